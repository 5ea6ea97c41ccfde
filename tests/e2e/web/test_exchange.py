"""The list's columns, one exchange and the form of rules, over a running klamm with real clients."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from klamm.client import Klamm as Client
from klamm.rules.actions import ACTIONS
from klamm.rules.file.rule_file import read_text
from tests.brokers.kraft import Cluster
from tests.e2e.light_traffic import BILLING, PATIENCE_S, PROBE, SHOP, probing
from tests.e2e.web.inspected_shop import Ground, choose, of
from tests.e2e.web.inspector import drawn, filtered, opened, reloaded, violations

pytestmark = pytest.mark.brokers
PRODUCES = f'client_id == "{SHOP}" and api == Produce'


@pytest.fixture
def rules(ground: Ground) -> Iterator[Client]:
    client = Client(ground.klamm.admin)
    yield client
    client.rules_off()


@pytest.fixture
def page(ground: Ground) -> Iterator[Page]:
    with opened(ground.browser, ground.address, permissions=["clipboard-read", "clipboard-write"]) as found:
        yield found


def cell(page: Page, column: str) -> Locator:
    return page.locator(f'.row[data-api] > [data-column="{column}"]').first


def opened_produce(page: Page, among: int = 1) -> Locator:
    """A Produce exchange of the shop, chosen in a list of some that stands still."""
    filtered(page, PRODUCES)
    page.locator(of(SHOP, "Produce")).nth(among - 1).wait_for()
    choose(page, of(SHOP, "Produce"))
    request = page.locator(".side.request")
    request.locator(".field").first.wait_for()
    return request


def test_rows_on_which_a_rule_acted_have_its_colour_and_its_name(page: Page, rules: Client) -> None:
    rules.add_rule({"name": "late-orders", "api": "Produce", "client": SHOP, "delay": "5ms"})
    filtered(page, PRODUCES)
    row = page.locator(".row.ruled").first
    row.wait_for()
    expect(page.get_by_role("list", name="rules that acted")).to_contain_text("late-orders")
    page.get_by_role("button", name="columns", exact=True).click()
    page.get_by_label("Add a column").fill("rule")
    page.keyboard.press("Enter")
    expect(page.locator('.row.ruled > [data-column="rule"]').first).to_have_text("late-orders")
    page.get_by_role("list", name="rules that acted").get_by_role("link", name="late-orders").click()
    expect(page.locator('tr[data-rule="late-orders"]')).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("link", name="rules", exact=True)).to_have_attribute("aria-current", "page")
    rules.remove_rule("late-orders")
    expect(page.get_by_text("no rules")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="late-orders").click()
    expect(page.locator("#message")).to_have_text("no rule late-orders is in force any more")


def test_a_field_of_a_body_becomes_a_column_that_the_link_keeps(page: Page) -> None:
    filtered(page, PRODUCES)
    page.get_by_role("button", name="columns", exact=True).click()
    field = page.get_by_label("Add a column")
    field.fill("request.akcs")
    field.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="did you mean request.acks?")).to_be_visible()
    expect(page.locator("#column-names option[value='request.acks']")).to_have_count(1)
    field.fill("request.acks")
    field.press("Enter")
    expect(cell(page, "request.acks")).to_have_text("-1")
    page.get_by_role("button", name="remove broker").click()
    reloaded(page)
    expect(cell(page, "request.acks")).to_have_text("-1")
    expect(page.locator('[role="columnheader"][data-column="broker"]')).to_have_count(0)


def test_columns_are_moved_and_resized_by_keys_and_by_the_pointer(page: Page) -> None:
    heads = page.get_by_role("columnheader")
    expect(heads.nth(1)).to_have_attribute("data-column", "API")
    page.get_by_role("button", name="columns", exact=True).press("Enter")
    page.get_by_role("button", name="move API to the left").press("Enter")
    expect(heads.first).to_have_attribute("data-column", "API")
    expect(page.get_by_role("button", name="move API to the right")).to_be_focused()
    page.get_by_role("button", name="make API wider").press("Enter")
    expect(page).to_have_url(re.compile(r"columns=API%3A\d+"))
    page.keyboard.press("Escape")
    before = heads.first.bounding_box()
    assert before is not None
    edge, middle = before["x"] + before["width"] - 3, before["y"] + before["height"] / 2
    page.mouse.move(edge, middle)
    page.mouse.down()
    page.mouse.move(edge + 60, middle)
    page.mouse.up()
    expect(heads.first).not_to_have_css("width", f"{before['width']}px")
    after = heads.first.bounding_box()
    assert after is not None
    assert abs(after["width"] - before["width"] - 60) < 8
    heads.first.drag_to(heads.nth(3))
    expect(heads.first).not_to_have_attribute("data-column", "API")


def test_kinds_of_exchanges_are_hidden_and_counted(page: Page) -> None:
    page.locator(of(BILLING, "Fetch")).first.wait_for()
    page.get_by_role("button", name="hide", exact=True).click()
    page.get_by_label("heartbeats").check()
    page.get_by_label("empty fetches").check()
    expect(page.locator(".count")).to_contain_text(re.compile(r"[\d,]+ hidden"))
    expect(page).to_have_url(re.compile("hide=heartbeats%2Cempty"))
    page.get_by_role("button", name="columns", exact=True).click()
    page.get_by_label("Add a column").fill("response.responses.partitions.records")
    page.keyboard.press("Enter")
    fetched = page.locator(f'{of(BILLING, "Fetch")} > [data-column="response.responses.partitions.records"]')
    expect(fetched.first).to_contain_text(re.compile(r"[1-9]\d* bytes"))
    page.get_by_role("button", name="freeze").click()
    assert not [text for text in fetched.all_inner_texts() if re.fullmatch(r"(0 bytes|null)?", text)]


def test_names_seen_so_far_are_completed_with_their_quotes(page: Page) -> None:
    page.locator(of(SHOP, "Produce")).first.wait_for()
    field = page.get_by_role("combobox", name="filter", exact=True)
    field.press_sequentially("client_id == sh")
    expect(page.get_by_role("option", name=f'"{SHOP}"', exact=True)).to_be_visible()
    field.press("Tab")
    expect(field).to_have_value(f'client_id == "{SHOP}"')
    field.fill("")
    field.press_sequentially('topic == "or')
    expect(page.get_by_role("option", name=re.compile('^"orders-'))).to_be_visible()
    field.press("Tab")
    expect(field).to_have_value(re.compile('^topic == "orders-[0-9a-f]+"$'))


def test_a_name_alone_is_completed_to_a_condition(page: Page) -> None:
    page.locator(of(SHOP, "Produce")).first.wait_for()
    field = page.get_by_role("combobox", name="filter", exact=True)
    field.press_sequentially("api == Produce and (not orde")
    page.get_by_role("option", name=re.compile('^topic == "orders-')).wait_for()
    field.press("Tab")
    expect(field).to_have_value(re.compile('^api == Produce and [(]not topic == "orders-[0-9a-f]+"$'))
    field.fill("")
    field.press_sequentially("glob(sho")
    expect(page.get_by_role("option", name=f'"{SHOP}"', exact=True)).to_be_visible()
    filtered(page, SHOP)
    expect(page.locator(".filter .problem")).to_contain_text(
        f'{SHOP} is no condition: write client_id == "{SHOP}", topic'
    )
    filtered(page, f'client_id == "{SHOP}"')
    page.locator(of(SHOP, "Produce")).first.wait_for()


def test_on_a_wide_screen_the_list_beside_an_exchange_has_clients_and_topics(ground: Ground) -> None:
    with opened(ground.browser, ground.address, viewport={"width": 1440, "height": 800}) as page:
        opened_produce(page)
        row = page.locator(".row.chosen")
        expect(row.locator('[data-column="client"]')).to_have_text(SHOP)
        expect(row.locator('[data-column="topic, group"]')).to_have_text(re.compile("^orders-"))
        grid = page.get_by_role("grid", name="exchanges")
        assert grid.evaluate("list => list.scrollWidth <= list.clientWidth")
        page.set_viewport_size({"width": 1280, "height": 800})
        expect(row.locator('[data-column="client"]')).to_have_count(0)
        assert grid.evaluate("list => list.scrollWidth <= list.clientWidth")


def test_an_exchange_is_copied_in_forms_that_other_tools_take(page: Page) -> None:
    opened_produce(page)
    copies = page.get_by_role("group", name="copy as")

    def copied(form: str, begin: str) -> str:
        copies.get_by_role("button", name=form, exact=True).click()
        expect(page.locator("#message")).to_contain_text(f"copied: {begin}")
        return str(page.evaluate("navigator.clipboard.readText()"))

    assert copied("filter", "client_id").startswith(f'client_id == "{SHOP}" and api == Produce')
    assert read_text(copied("rule", "rules:"), "the page", ACTIONS).mistakes == []
    assert "klamm.inject('Produce'" in copied("test", "def test_produce_of_shop")
    assert re.fullmatch("klamm decode [0-9a-f]+", copied("decode", "klamm decode"))
    assert json.loads(copied("JSON", "{"))["client_id"] == SHOP


def test_records_are_summed_up_and_shown_when_they_are_asked_for(page: Page) -> None:
    request = opened_produce(page)
    batch = request.get_by_role("region", name="record batches").get_by_role("row").nth(1)
    expect(batch).to_contain_text("orders-")
    assert request.locator('.field[data-field="value"]').count() == 0
    request.get_by_role("button", name="show keys, values and headers").click()
    expect(request.locator('.field[data-field="value"]').first).to_contain_text(re.compile('"order \\d+"'))
    expect(request.get_by_role("button", name="show keys, values and headers")).to_have_count(0)


def test_addresses_are_shown_as_the_broker_wrote_them_and_as_klamm_sent_them(
    page: Page, ground: Ground, kafka: Cluster
) -> None:
    filtered(page, f'client_id == "{PROBE}" and api == Metadata')
    with probing(ground.klamm.bootstrap) as ask_for:
        while page.locator(of(PROBE, "Metadata")).count() == 0:  # the filter may not be in force yet
            ask_for(ground.shop.topic).result(PATIENCE_S)
            drawn(page)
    choose(page, of(PROBE, "Metadata"))
    answer = page.locator(".side.answer")
    ports = [str(kafka.address(node)[1]) for node in (1, 2, 3)]
    changed = answer.get_by_role("row").filter(has_text="port")
    expect(changed.first).to_contain_text(re.compile("|".join(ports)))
    port = answer.locator('.tree .field.changed[data-field="port"]').first
    expect(port).to_contain_text(re.compile("|".join(ports)))
    answer.get_by_role("button", name="as klamm sent it on").click()
    expect(port).not_to_contain_text(re.compile("|".join(ports)))
    expect(page.locator(".side.request .changes")).to_have_count(0)


def test_the_course_of_an_exchange_tells_what_a_rule_held(page: Page, rules: Client) -> None:
    rules.add_rule(
        {"name": "held", "api": "Produce", "client": SHOP, "delay": {"time": "300ms", "of": "request"}}
    )
    filtered(page, f"{PRODUCES} and latency_ms > 250")
    page.locator(of(SHOP, "Produce")).nth(1).wait_for()
    choose(page, of(SHOP, "Produce"))
    timing = page.get_by_role("region", name="timing")
    expect(timing.locator(".lane.this .phase.held")).to_be_visible()
    expect(timing.get_by_role("list").last).to_contain_text("+300.000 msit went on to the broker")
    expect(page.locator("dd.rules")).to_have_text("held")
    neighbour = timing.get_by_role("button", name="Produce").first
    number = page.locator(".row.chosen").get_attribute("data-number")
    neighbour.click()
    expect(page.locator(f'.row.chosen:not([data-number="{number}"])')).to_be_visible()


def test_a_group_member_is_followed(page: Page) -> None:
    filtered(page, f'group == "{BILLING}" and api in (Heartbeat, OffsetCommit, ConsumerGroupHeartbeat)')
    page.locator(".row[data-api]").first.wait_for()
    page.get_by_role("button", name="freeze").click()
    page.locator(".row[data-api]").first.click()
    page.get_by_role("button", name="this member", exact=True).click()
    field = page.get_by_role("combobox", name="filter", exact=True)
    expect(field).to_have_value(re.compile('^member_id == "[^"]+"$'))
    page.get_by_role("button", name="go on").click()
    expect(page.locator(f'.row[data-client="{BILLING}"]').first).to_be_visible()
    assert page.locator(f'.row[data-api]:not([data-client="{BILLING}"])').count() == 0
    page.get_by_role("button", name="add this API to the filter").click()
    expect(field).to_have_value(re.compile(r'^\(member_id == ".*"\) and api == \w+$'))


def test_a_rule_is_tried_on_the_list_before_it_is_in_force(page: Page, rules: Client) -> None:
    opened_produce(page, among=3)
    page.get_by_text("fail, delay or pause the next ones like this").click()
    expect(page.get_by_label("client", exact=True)).to_have_value(SHOP)
    expect(page.get_by_label("topic", exact=True)).to_have_value(re.compile("^orders-"))
    page.get_by_label("times").fill("2")
    page.get_by_role("button", name="try it on the list").click()
    expect(page.locator(".tried")).to_contain_text("and would act on 2 of them")
    expect(page.locator(".tried")).to_contain_text(
        "answer in the broker's place with NOT_LEADER_OR_FOLLOWER (2)"
    )
    page.get_by_role("grid").focus()
    page.keyboard.press("Home")
    expect(page.locator(".row.would-act")).to_have_count(2)
    page.get_by_role("button", name="clear the marks").click()
    expect(page.locator(".row.would-act")).to_have_count(0)
    assert rules.rules() == []


def test_the_form_explains_a_rule_and_its_hits_become_a_curve(
    page: Page, rules: Client, ground: Ground
) -> None:
    page.goto(f"{ground.address}/#rules")
    page.get_by_label("API", exact=True).fill("Produce")
    page.get_by_label("client", exact=True).fill(SHOP)
    page.get_by_label("action").select_option("delay")
    page.get_by_label("time", exact=True).fill("5 minuets")
    expect(page.locator(".rule-form .problem")).to_contain_text("delay")
    page.get_by_label("time", exact=True).fill("5ms")
    page.get_by_label("times").fill("")
    expect(page.locator(".rule-form .read")).to_contain_text("requests of Produce")
    expect(page.locator(".rule-form pre")).to_contain_text("delay: 5ms")
    page.get_by_label("side", exact=True).select_option("response")
    expect(page.locator(".rule-form .read")).to_contain_text("responses of Produce")
    page.get_by_text("write it as JSON").click()
    in_json = page.get_by_label("A rule in the form of a rule file")
    expect(in_json).to_have_value(re.compile("response"))
    written = json.loads(in_json.input_value())
    assert (written["side"], written["delay"]) == ("response", "5ms")
    page.get_by_label("side", exact=True).select_option("request")
    page.locator(".rule-form").get_by_role("button", name="put it in force").click()
    rule = page.locator("tr[data-rule]")
    expect(rule.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"[1-9][\d.]* hits/s"))
    points = rule.locator("polyline").get_attribute("points")
    assert points
    rule.get_by_role("button", name="remove").click()
    expect(page.get_by_text("no rules")).to_be_visible()
    assert rules.rules() == []


def test_nobody_types_into_a_form_before_it_is_filled(page: Page, ground: Ground) -> None:
    page.goto(f"{ground.address}/#rules")
    held: list[Route] = []
    page.route("**/api/actions", lambda route: held.append(route))
    with page.expect_request("**/api/actions"):
        page.reload(wait_until="commit")
    api = page.get_by_label("API", exact=True)
    expect(api).to_have_count(0)
    held.pop().continue_()
    api.fill("Fetch")
    expect(page.locator(".rule-form .read")).to_contain_text("requests of Fetch")
    expect(api).to_have_value("Fetch")


def test_two_exchanges_and_two_versions_are_compared(page: Page) -> None:
    filtered(page, PRODUCES)
    page.locator(of(SHOP, "Produce")).nth(2).wait_for()
    page.get_by_role("button", name="freeze").click()
    page.get_by_role("grid").focus()
    page.keyboard.press("Home")
    page.get_by_role("button", name="with another exchange").click()
    expect(page.get_by_text("choose another exchange, to compare")).to_be_visible()
    page.get_by_role("grid").focus()
    page.keyboard.press("ArrowDown")
    page.get_by_role("button", name=re.compile("^with Produce v")).click()
    compared = page.locator(".compared")
    expect(compared.locator('tr[data-path="latency_ms"]')).to_be_visible()
    expect(compared.locator("tr[data-path$='base_offset']").first).to_be_visible()
    page.get_by_role("button", name="with another version of the API").click()
    page.get_by_label("version", exact=True).select_option("3")
    expect(page.locator(".layouts tr.removed, .layouts tr.added, .layouts tr.changed").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hinders_people_who_use_other_means(ground: Ground, rules: Client, scheme: str) -> None:
    rules.add_rule({"name": "late", "api": "Produce", "client": SHOP, "delay": "5ms"})
    with opened(ground.browser, ground.address, color_scheme=scheme) as page:
        request = opened_produce(page)
        page.locator(".row.ruled").first.wait_for()
        page.get_by_text("fail, delay or pause the next ones like this").click()
        page.get_by_role("button", name="try it on the list").click()
        page.locator(".tried").wait_for()
        page.get_by_role("button", name="with another version of the API").click()
        page.locator(".compared select").wait_for()
        request.get_by_role("button", name="show keys, values and headers").click()
        request.locator('.field[data-field="value"]').first.wait_for()
        assert violations(page) == []
        for panel in ("hide", "columns", "try a rule"):
            page.get_by_role("button", name=panel, exact=True).click()
            page.locator("details[open] > .panel").wait_for()
            assert violations(page) == [], panel
            page.get_by_role("button", name=panel, exact=True).click()
        page.goto(f"{ground.address}/#rules")
        page.locator(".rule-form pre").wait_for()
        page.locator("tr[data-rule] .curve").wait_for()
        assert violations(page) == []


def test_fields_have_room_beside_their_bytes_and_do_not_scroll_by_themselves(page: Page) -> None:
    request = opened_produce(page)
    tree, dump = request.locator(".tree"), request.locator(".hex")
    expect(dump.locator(".line").nth(1)).to_contain_text("00008")
    assert tree.evaluate("tree => tree.clientWidth") > 450
    assert tree.evaluate("tree => tree.scrollHeight === tree.clientHeight")
    page.get_by_role("button", name="to the answer").click()
    expect(page.locator(".side.answer")).to_be_focused()
    expect(page.locator(".side.answer")).to_be_in_viewport()
    page.set_viewport_size({"width": 390, "height": 800})
    expect(dump.locator(".line").nth(1)).to_contain_text("00008")
    assert dump.evaluate("dump => dump.scrollWidth <= dump.clientWidth")
    page.set_viewport_size({"width": 1920, "height": 800})
    expect(dump.locator(".line").nth(1)).to_contain_text("00010")


def test_a_phone_shows_all_of_an_exchange(ground: Ground) -> None:
    size = {"width": 400, "height": 800}
    with opened(ground.browser, ground.address, viewport=size, has_touch=True) as page:
        opened_produce(page)
        page.get_by_text("fail, delay or pause the next ones like this").click()
        page.get_by_role("button", name="put it in force").wait_for()
        code = page.get_by_label("error", exact=True)
        expect(code).to_have_value("NOT_LEADER_OR_FOLLOWER")
        assert code.evaluate("input => input.scrollWidth <= input.clientWidth")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert page.locator(".detail").evaluate("element => element.scrollWidth") <= size["width"]
