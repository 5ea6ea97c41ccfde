"""One exchange of a capture: what klamm sent in its place, what was not kept, and rules tried on it."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from klamm.decoders import API, encode
from klamm.decoders.headers import response_frame
from tests.captures.rows import Talk, connection, written
from tests.dashboards.web.exchanges import records
from tests.e2e.web.inspector import filtered, inspector, opened, violations, visited

BEAT = {"group_id": "billing", "generation_id": 1, "member_id": "m"}
HEADER = 61  # bytes of a batch before its records


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Heartbeats of which klamm changed one answer and withheld another, records, kept and blanked, and an
    answer with bytes behind its end.
    """
    folder = tmp_path_factory.mktemp("captured")
    sent = response_frame(API["Heartbeat"], 3, 0, encode({"error_code": 27}, "Heartbeat", 3, "response"))[4:]
    talk = Talk().opened()
    talk.exchange("Heartbeat", 3, BEAT, {"error_code": 0}, fate="rewritten", forwarded=sent)
    talk.exchange("Heartbeat", 3, BEAT, {"error_code": 0}, fate="withheld")
    kept, blank = Talk(connection(2), "kept"), Talk(connection(3), "blank")
    whole = records(b"tea", b"<b>cake</b>")
    for one, data in ((kept, whole), (blank, whole[:HEADER] + bytes(len(whole) - HEADER))):
        one.now_ms = 50
        one.opened().produce(records=data).produce(records=data)
    odd = Talk(connection(4), "odd", now_ms=90)
    odd.exchange("Heartbeat", 0, BEAT, bytes.fromhex("00000000 001b"))
    rows = [*talk.rows, *kept.rows, *blank.rows, *odd.rows]
    with inspector(folder / "web.log", str(written(folder / "a.arrow", rows))) as found:
        yield found


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, address) as found:
        yield found


def test_an_answer_that_klamm_changed_is_shown_both_ways(page: Page) -> None:
    page.locator('.row[data-api="Heartbeat"]').first.click()
    answer = page.locator(".side.answer")
    changed = answer.get_by_role("row").filter(has_text="error_code")
    expect(changed).to_contain_text("0 NONE")
    expect(changed).to_contain_text("27 REBALANCE_IN_PROGRESS")
    field = answer.locator('.tree .field[data-field="error_code"]')
    expect(field).to_contain_text("0 NONE")
    answer.get_by_role("button", name="as klamm sent it on").press("Enter")
    expect(field).to_contain_text("27 REBALANCE_IN_PROGRESS")
    page.locator('.row[data-api="Heartbeat"]').nth(1).click()
    expect(answer.get_by_text("klamm sent nothing of it on")).to_be_visible()


PARTITIONS, FAILED = 100, (3, 77)  # a list of so many begins closed


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A commit that was refused for two of many partitions."""
    folder = tmp_path_factory.mktemp("failed")
    numbers = range(PARTITIONS)
    offsets = [{"partition_index": one, "committed_offset": 7, "committed_metadata": ""} for one in numbers]
    codes = [{"partition_index": one, "error_code": 27 if one in FAILED else 0} for one in numbers]
    request = {
        "group_id": "billing", "generation_id_or_member_epoch": 1, "member_id": "m",
        "topics": [{"name": "orders", "partitions": offsets}],
    }  # fmt: skip
    answer = {"throttle_time_ms": 0, "topics": [{"name": "orders", "partitions": codes}]}
    talk = Talk().opened().exchange("OffsetCommit", 7, request, answer)
    with inspector(folder / "web.log", str(written(folder / "a.arrow", talk.rows))) as found:
        yield found


def test_the_name_of_an_error_leads_to_its_field(browser: Browser, failed: str) -> None:
    with opened(browser, failed) as page:
        page.locator('.row[data-api="OffsetCommit"]').click()
        name = page.locator("dd.errors").get_by_role("button", name="REBALANCE_IN_PROGRESS x2")
        field = page.locator('.side.answer .field.error[data-field="error_code"]')
        lit = page.locator(".side.answer .field.lit")
        expect(field).to_have_count(0)
        for number in (*FAILED, FAILED[0]):
            name.press("Enter")
            expect(lit).to_contain_text("27 REBALANCE_IN_PROGRESS")
            expect(lit).to_be_focused()
            expect(lit).to_be_in_viewport()
            part = lit.locator("xpath=ancestor::details[1]")
            expect(part.locator('.field[data-field="partition_index"] .value')).to_have_text(str(number))
            expect(page.locator(".side.answer .hex mark").first).to_have_text("00")
        assert violations(page) == []


def test_the_name_of_an_error_that_klamm_sent_leads_to_the_body_as_it_was_sent(page: Page) -> None:
    page.locator('.row[data-api="Heartbeat"]').first.click()
    page.get_by_role("button", name="REBALANCE_IN_PROGRESS").click()
    expect(page.get_by_role("button", name="as klamm sent it on")).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="as it came")).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".side.answer .field.lit")).to_contain_text("27 REBALANCE_IN_PROGRESS")


def test_records_are_shown_where_they_were_kept_and_their_batches_in_any_case(page: Page) -> None:
    page.locator('.row[data-client="kept"]').first.click()
    request = page.locator(".side.request")
    request.get_by_role("button", name="show keys, values and headers").click()
    expect(request.locator('.field[data-field="value"]').nth(1)).to_contain_text('"<b>cake</b>"')
    assert request.locator("b b").count() == 0
    page.locator('.row[data-client="blank"]').first.click()
    expect(request.get_by_text("keys, values and headers are not kept here")).to_be_visible()
    expect(request.get_by_role("region", name="record batches")).to_contain_text("orders 3")
    expect(request.get_by_role("button", name="show keys, values and headers")).to_have_count(0)


def test_an_answer_that_does_not_end_as_its_layout_does_is_marked_in_the_list(page: Page) -> None:
    row = page.locator('.row[data-client="odd"]')
    reason = (
        "response does not decode: the body at byte 2: 4 bytes left over; the layouts of versions 1, 2, 3 fit"
    )
    expect(row.locator('[data-column="error"]')).to_have_text(reason)
    expect(row).to_have_class(re.compile("failed"))
    row.click()
    body = page.locator(".side.answer .body")
    told, tree, dump = (body.locator(part).bounding_box() for part in (".reason", ".tree", ".hex"))
    assert told is not None
    assert tree is not None
    assert dump is not None
    assert tree["x"] == told["x"] < dump["x"]
    assert tree["y"] == dump["y"] >= told["y"] + told["height"]


def test_a_rule_is_tried_on_what_the_filter_has_chosen(page: Page) -> None:
    filtered(page, "api == Produce")
    expect(page.locator(".row[data-api]")).to_have_count(4)
    page.get_by_role("button", name="try a rule").click()
    page.get_by_label("client", exact=True).fill("kept")
    page.get_by_label("times").fill("1")
    page.get_by_role("button", name="try it on the list").click()
    expect(page.locator(".tried")).to_contain_text(
        "The rule selects 2 of 4 exchanges, and would act on 1 of them."
    )
    expect(page.locator('.row.would-act[data-client="kept"]')).to_have_count(1)
    expect(page.locator('.row.would-select[data-client="kept"]')).to_have_count(1)
    expect(page.get_by_role("button", name="put it in force")).to_have_count(0)
    assert violations(page) == []


def test_a_mistake_in_a_rule_is_told_in_its_form(page: Page) -> None:
    page.get_by_role("button", name="try a rule").click()
    page.get_by_label("error", exact=True).fill("NOT_LEADER")
    expect(page.locator(".rule-form .problem")).to_contain_text("did you mean NOT_LEADER_OR_FOLLOWER?")
    page.get_by_role("button", name="try it on the list").click()
    expect(page.locator("#message")).to_contain_text("did you mean NOT_LEADER_OR_FOLLOWER?")


def test_what_is_hidden_is_in_the_link_and_counted(page: Page, browser: Browser) -> None:
    page.get_by_role("button", name="hide", exact=True).click()
    page.get_by_label("heartbeats").check()
    expect(page.locator(".row[data-api]")).to_have_count(5)  # one heartbeat failed, as klamm sent it on
    expect(page.locator(".count")).to_contain_text("2 hidden")
    with opened(browser, page.url) as other:
        expect(other.locator(".count")).to_contain_text("2 hidden")
        expect(other.locator(".row[data-api]")).to_have_count(5)


def test_a_column_and_a_kind_that_there_are_not_are_explained(browser: Browser, address: str) -> None:
    for query, why in (
        ("columns=request.akcs", "did you mean request.acks?"),
        ("hide=lag", "cannot be hidden"),
    ):
        with opened(browser, f"{address}/#exchanges?{query}") as page:
            expect(page.get_by_role("alert").filter(has_text=re.compile(re.escape(why)))).to_be_visible()


def test_a_request_that_the_network_lost_is_sent_once_more(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.route("**/api/about", lambda route: route.abort(), times=1)
    visited(page, address)
    expect(page.locator(".row[data-api]").first).to_be_visible()
    page.close()


def test_a_link_to_an_exchange_shows_it_beside_its_neighbours(page: Page, browser: Browser) -> None:
    page.locator('.row[data-client="kept"]').first.click()
    expect(page).to_have_url(re.compile("exchange="))
    with opened(browser, page.url) as other:
        timing = other.get_by_role("region", name="timing")
        expect(timing.locator(".lane.this .phase.broker")).to_be_visible()
        expect(timing.get_by_role("button", name="after: Produce")).to_be_visible()
