"""Timelines of real clients in front of a real cluster: while klamm runs, and of its capture."""

import re
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs

import pytest
from confluent_kafka import KafkaException, Producer
from playwright.sync_api import Browser, Locator, Page, expect

from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, wait_for
from tests.e2e import topics
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import Klamm, klamm_in_front_of
from tests.e2e.web.inspector import chromium, drawn, filtered, inspector, opened, reloaded, violations
from tests.e2e.web.member import SESSION_MS

pytestmark = [pytest.mark.brokers, pytest.mark.timeout(600)]
MEMBER = Path(__file__).with_name("member.py")
KILLED, STAYED = "killed-one", "one-that-stays"
LONG_MS = 45_000  # a session of those that are not to be pushed out, on a busy machine either
MARKUP = "<b>x</b><img src=x onerror=alert(1)>"
VIEWS = ("groups", "producers", "sessions")
PROBLEM = re.compile("[✕▲]")


class Ground(NamedTuple):
    """A klamm whose clients have done all that the tests look for, and its inspector."""

    klamm: Klamm
    topic: str
    live: Page  # of groups, opened before the first client came
    producing: Page  # the same of producers
    fetching: Page  # the same of sessions
    address: str  # of the inspector of klamm
    captured: str  # of that of its capture
    browser: Browser


@pytest.fixture(scope="module")
def ground(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    folder = tmp_path_factory.mktemp("timelines")
    topic, capture = f"orders-{uuid.uuid4().hex[:8]}", folder / "capture"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    with (
        klamm_in_front_of(
            kafka.bootstrap(), "127.0.0.1", folder / "klamm.log", "--capture", str(capture)
        ) as klamm,
        inspector(folder / "web.log", "--admin", klamm.admin) as address,
        inspector(folder / "captured.log", str(capture)) as captured,
        chromium() as browser,
        opened(browser, f"{address}/#groups") as live,
        opened(browser, f"{address}/#producers") as producing,
        opened(browser, f"{address}/#sessions") as fetching,
    ):
        for page in (live, producing, fetching):
            expect(page.locator("#source")).to_contain_text("klamm at")
            expect(page.locator(".nothing")).to_be_visible()
        members(klamm, topic, folder)
        fence(klamm.bootstrap, topic)
        lose_a_session(klamm)
        yield Ground(klamm, topic, live, producing, fetching, address, captured, browser)


def members(klamm: Klamm, topic: str, folder: Path) -> None:
    """Of group `billing` one is killed, and the others see it; of group `ledger` one leaves."""

    def started(library: str, group: str, client_id: str) -> Process:
        session_ms = SESSION_MS if client_id == KILLED else LONG_MS
        words = [sys.executable, str(MEMBER), library, klamm.bootstrap, topic, group, client_id]
        words.append(str(session_ms))
        return Process(words, folder / f"member-{len(running)}.log")

    def have(group: str, *counts: int) -> None:
        """The members have so many partitions."""

        def there() -> bool:
            return sorted(topics.assigned(klamm.bootstrap, group)) == list(counts)

        wait_for(there, f"{counts} in {group}", [one for one in running if one.running])

    running: list[Process] = []
    try:
        running.append(started("librdkafka", "billing", STAYED))
        running.append(started("aiokafka", "ledger", "ledger-1"))
        running.append(started("kafka-python", "archive", "archive"))  # it has fetch sessions
        running.append(started("librdkafka", MARKUP, MARKUP))
        for group in ("billing", "ledger", "archive"):
            have(group, 3)
        killed, leaves = started("librdkafka", "billing", KILLED), started("aiokafka", "ledger", "ledger-2")
        running += [killed, leaves]
        have("billing", 1, 2)
        have("ledger", 1, 2)
        killed.kill()
        assert leaves.stop() == 0, leaves.tail()
        have("ledger", 3)
        have("billing", 3)
    finally:
        for one in running:
            one.stop()


def fence(bootstrap: str, topic: str) -> None:
    """The first producer of a transactional id is in a transaction when a second one comes."""

    def producer(client_id: str) -> Producer:
        own = {"client.id": client_id, "transactional.id": "invoices", "log_level": 0}
        made = Producer({"bootstrap.servers": bootstrap, **own})
        made.init_transactions(60)
        made.begin_transaction()
        made.produce(topic, b"an order", partition=0)
        made.flush(60)
        return made

    first = producer("first")
    first.commit_transaction(60)
    first.begin_transaction()
    first.produce(topic, b"another order", partition=0)
    first.flush(60)
    second = producer("second")
    with suppress(KafkaException):
        first.produce(topic, b"one too many", partition=1)
        first.flush(60)
        first.commit_transaction(60)
    second.commit_transaction(60)


def lose_a_session(klamm: Klamm) -> None:
    """A fetch of a session that the broker does not know."""
    request = {"max_wait_ms": 1, "min_bytes": 1, "session_id": 12345, "session_epoch": 7, "topics": []}
    answer = ask((klamm.host, klamm.port + 2), "Fetch", 12, request)
    assert answer["error_code"] == 70


def lanes(page: Page) -> Locator:
    return page.locator(".timeline .lanes")


def mark(page: Page) -> Locator:
    """The text of the chosen mark."""
    return page.locator('.timeline .told[role="option"]')


def card_of(page: Page) -> Locator:
    """What stands beside the timeline: the lane and the mark."""
    return page.locator(".detail .card")


def press(page: Page, key: str) -> str:
    """A key on the timeline; the text of the mark that is chosen then."""
    lanes(page).press(key)
    drawn(page)
    return mark(page).inner_text()


def sought(page: Page, words: str) -> str:
    """Goes from problem to problem until the text of one fits this pattern."""

    texts: list[str] = []

    def found() -> str:
        press(page, "Escape")
        texts.clear()
        while [text := press(page, "n")] != texts[-1:]:
            if re.search(words, text):
                return text
            texts.append(text)
        return ""

    try:
        return wait_for(found, f"a mark with {words!r}")
    except TimeoutError as error:
        error.add_note("the problems are:\n" + "\n".join(texts))
        raise


def search(page: Page, text: str) -> None:
    """Search for lanes with this text; empty for all."""
    page.get_by_role("searchbox", name="find lanes").fill(text)
    drawn(page)


def name_of(page: Page, label: str | re.Pattern[str]) -> Locator:
    return page.locator(".timeline .name", has_text=label).first


@pytest.fixture(params=["live", "capture"])
def groups(request: pytest.FixtureRequest, ground: Ground) -> Iterator[Page]:
    """The view of groups over both sources."""
    yield from seen(request.param, "groups", ground.live, ground)


@pytest.fixture(params=["live", "capture"])
def producers(request: pytest.FixtureRequest, ground: Ground) -> Iterator[Page]:
    yield from seen(request.param, "producers", ground.producing, ground)


@pytest.fixture(params=["live", "capture"])
def sessions(request: pytest.FixtureRequest, ground: Ground) -> Iterator[Page]:
    yield from seen(request.param, "sessions", ground.fetching, ground)


def seen(kind: str, view: str, live: Page, ground: Ground) -> Iterator[Page]:
    if kind == "live":
        yield live
        return
    with opened(ground.browser, f"{ground.captured}/#{view}") as page:
        yield page


def test_a_member_that_was_killed_is_out_and_its_rebalance_says_why(groups: Page) -> None:
    out = sought(groups, r"out: no heartbeat for [\d.]+ s")
    silent_s = float(out.partition("no heartbeat for ")[2].partition(" s")[0])
    assert silent_s >= SESSION_MS / 1000
    assert "pushed out" in out
    assert KILLED in out
    assert "session.timeout.ms is 6 s" in out
    rebalance = sought(groups, f"{KILLED}")
    assert "rebalance" in rebalance
    expect(name_of(groups, "billing")).to_contain_text("▲")


def test_a_member_that_joins_and_one_that_leaves_are_causes(groups: Page) -> None:
    assert "joined" in sought(groups, "ledger-2")
    left = sought(groups, "left")
    assert "ledger-2" in left
    groups.locator(".timeline .name", has_text="ledger-2").first.click()
    expect(groups.locator(".card dl")).to_contain_text("ledger-2")
    assert "leave" in press(groups, "End")
    assert "member id to join with" in press(groups, "Home")


def test_an_assignment_names_its_partitions_and_opens_its_exchange(groups: Page, ground: Ground) -> None:
    groups.locator(".timeline .name", has_text=STAYED).first.click()
    press(groups, "Home")
    for _ in range(20):
        if "assigned" in (text := press(groups, "ArrowRight")):
            break
    assert f"{ground.topic} [0-2]" in text
    lanes(groups).press("Enter")
    expect(groups.locator(".detail")).to_contain_text("SyncGroup")
    expect(groups.locator(".side.answer .field[data-field='assignment']").first).to_be_visible()
    groups.get_by_role("button", name="close").first.click()
    expect(groups.locator(".detail")).to_be_hidden()
    expect(lanes(groups)).to_be_focused()


def test_a_fenced_producer_says_by_whom_and_opens_the_refusal(producers: Page) -> None:
    assert "fenced by second at" in sought(producers, "its open transaction was aborted")
    refused = sought(producers, ": fenced by second at")
    assert "INVALID_PRODUCER_EPOCH" in refused or "PRODUCER_FENCED" in refused
    lanes(producers).press("Enter")
    expect(producers.locator("dd.errors")).to_contain_text(re.compile("EPOCH|FENCED"))
    producers.locator(".timeline .name", has_text="first ·").first.click()
    texts = {press(producers, "Home")} | {press(producers, "ArrowRight") for _ in range(30)}
    assert any("transaction, committed after" in text for text in texts)
    assert any("sequence 0, 1 record" in text for text in texts)


def test_sessions_are_bands_and_a_lost_one_is_a_problem(sessions: Page) -> None:
    assert "session 12345 is known no more" in sought(sessions, "FETCH_SESSION_ID_NOT_FOUND")
    name = sessions.locator(".timeline .name:not(.group)", has_text="broker")
    search(sessions, "archive")
    expect(name_of(sessions, "archive")).to_be_visible()
    name.first.click()
    texts = {press(sessions, "Home")} | {press(sessions, "ArrowRight") for _ in range(6)}
    assert any("fetch session" in text for text in texts)
    assert any("incremental fetch of session" in text for text in texts)
    search(sessions, "")


def test_lanes_lead_to_their_exchanges(ground: Ground) -> None:
    with opened(ground.browser, f"{ground.captured}/#groups") as page:
        page.locator(".timeline .name", has_text=STAYED).first.click()
        page.get_by_role("link", name="this member's exchanges").click()
        rows = page.locator('.row[data-api="JoinGroup"]')
        expect(rows.first).to_be_visible()
        assert page.locator(f'.row[data-api]:not([data-client="{STAYED}"])').count() == 0
        page.go_back()
        page.locator(".timeline .name.group", has_text="billing").first.click()
        page.get_by_role("link", name="this group", exact=True).click()
        found = page.get_by_role("combobox", name="filter", exact=True)
        expect(found).to_have_value('group == "billing"')
        # a busy machine has more rows before these than the page shows
        filtered(page, f'{found.input_value()} and client_id == "{KILLED}"')
        expect(page.locator(f'.row[data-client="{KILLED}"]').first).to_be_visible()


def test_a_link_leads_to_the_lane_its_time_and_its_exchange(ground: Ground) -> None:
    with opened(ground.browser, f"{ground.captured}/#groups") as page:
        sought(page, "out: no heartbeat")
        for _ in range(3):
            press(page, "+")
        lanes(page).press("Enter")
        card = card_of(page)
        expect(card).to_contain_text("no heartbeat")
        expect(page).to_have_url(re.compile("lane=.*&kind=out&exchange=.*&from=.*&to="))
        link, words = page.url, card.inner_text()
    with opened(ground.browser, link) as page:
        expect(card_of(page)).to_have_text(words, use_inner_text=True)
        assert KILLED in page.locator(".timeline .name.chosen").inner_text()
        assert page.url == link


def test_a_view_goes_on_while_another_one_is_open(ground: Ground) -> None:
    def beat(member: str) -> object:
        asked = {"group_id": "late", "generation_id": 1, "member_id": member}
        return ask(ground.klamm.address, "Heartbeat", 4, asked)

    with opened(ground.browser, f"{ground.address}/#groups") as page:
        early = name_of(page, "early-one")
        wait_for(lambda: beat("early-one") and early.count(), "a heartbeat in groups")  # it listens by then
        page.get_by_role("link", name="exchanges", exact=True).click()
        row = page.locator('.row[data-api="Heartbeat"]')
        wait_for(lambda: beat("late-one") and row.count(), "a heartbeat in exchanges")
        page.get_by_role("link", name="groups", exact=True).click()
        expect(name_of(page, "late-one")).to_be_visible()
        expect(page).to_have_url(re.compile("#groups"))


@pytest.mark.parametrize("view", VIEWS)
def test_a_page_that_is_opened_later_has_the_same_marks(view: str, ground: Ground) -> None:
    first = {"groups": ground.live, "producers": ground.producing, "sessions": ground.fetching}[view]

    def shown(page: Page) -> tuple[str, list[str]]:
        """The number of marks with the missing parts, and the upper lanes."""
        lanes(page).evaluate("lanes => lanes.scrollTo(0, 0)")
        drawn(page)
        return page.locator(".bar .count").inner_text(), page.locator(".timeline .name b").all_inner_texts()

    with opened(ground.browser, f"{ground.address}/#{view}") as page:
        wait_for(lambda: shown(page) == shown(first), "the same marks")
        reloaded(page)
        wait_for(lambda: shown(page) == shown(first), "the same marks after a reload")


def turn(page: Page, key: str) -> None:
    """The wheel, with a key."""
    page.keyboard.down(key)
    page.mouse.wheel(0, 200)
    page.keyboard.up(key)


def test_time_is_zoomed_moved_and_followed(ground: Ground) -> None:
    page = ground.live
    follow = page.get_by_role("button", name="follow", exact=True)
    if follow.get_attribute("aria-pressed") == "false":
        follow.click()
    expect(follow).to_have_attribute("aria-pressed", "true")
    box = lanes(page).bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.5
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y, steps=4)
    page.mouse.up()
    expect(follow).to_have_attribute("aria-pressed", "false")
    expect(page).to_have_url(re.compile("from="))
    for act in (
        lambda: press(page, "+"),
        lambda: press(page, "Shift+ArrowLeft"),
        lambda: press(page, "-"),
        lambda: turn(page, "Control"),
        lambda: turn(page, "Shift"),
    ):
        before = page.url
        act()
        expect(page).not_to_have_url(before)
    press(page, "f")
    expect(follow).to_have_attribute("aria-pressed", "true")


def kinds(page: Page) -> set[str]:
    """Of the first marks of the chosen lane."""
    press(page, "Home")
    found = set()
    for _ in range(20):
        found.add(mark(page).locator("b").inner_text())
        press(page, "ArrowRight")
    return found


def test_kinds_can_be_hidden_and_groups_folded(ground: Ground) -> None:
    with opened(ground.browser, f"{ground.captured}/#groups") as page:
        page.locator(".timeline .name", has_text=STAYED).first.click()
        kind = page.get_by_role("group", name="kinds of marks").get_by_role("button", name="heartbeat")
        assert "heartbeat" in kinds(page)
        kind.click()
        expect(kind).to_have_attribute("aria-pressed", "false")
        assert "heartbeat" not in kinds(page)
        press(page, " ")
        expect(page.locator(".timeline .name", has_text=STAYED)).to_have_count(0)
        expect(page.locator(".timeline .name.group", has_text="▸ billing")).to_have_count(1)


def test_names_from_the_wire_are_text(groups: Page) -> None:
    search(groups, "<b>x")
    expect(groups.locator(".timeline .name.group")).to_contain_text(MARKUP)
    groups.locator(".timeline .name.group").click()
    expect(groups.locator(".card h2")).to_have_text(MARKUP)
    assert MARKUP in press(groups, "Home")
    assert groups.locator(".timeline img, .timeline b b, .card img").count() == 0
    search(groups, "")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hinders_people_who_use_other_means(view: str, scheme: str, ground: Ground) -> None:
    with opened(ground.browser, f"{ground.captured}/#{view}", color_scheme=scheme) as page:
        page.locator(".timeline .name .sums", has_text=PROBLEM).first.wait_for()
        assert violations(page) == []
        press(page, "n")
        lanes(page).press("Enter")
        page.locator(".side.request .field").first.wait_for()
        assert violations(page) == []


def test_a_phone_can_show_a_mark_and_its_exchange(ground: Ground) -> None:
    size = {"width": 400, "height": 800}
    with opened(ground.browser, f"{ground.captured}/#groups", viewport=size, has_touch=True) as page:
        page.locator(".timeline .name").first.wait_for()
        page.get_by_role("button", name="next problem").tap()
        expect(mark(page)).to_be_visible()
        page.locator(".timeline .name", has_text=STAYED[:6]).first.tap()
        expect(page.locator(".card")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_two_fingers_zoom(ground: Ground) -> None:
    with opened(ground.browser, f"{ground.captured}/#groups", has_touch=True) as page:
        page.locator(".timeline .name").first.wait_for()
        box = page.locator(".timeline canvas").bounding_box()
        assert box is not None
        middle, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        touch = page.context.new_cdp_session(page)
        for kind, apart in (("touchStart", 50), ("touchMove", 100), ("touchMove", 200), ("touchEnd", 0)):
            points = [{"x": middle - apart, "y": y, "id": 1}, {"x": middle + apart, "y": y, "id": 2}]
            words = {"type": kind, "touchPoints": points if apart else []}
            touch.send("Input.dispatchTouchEvent", words)
        expect(page).to_have_url(re.compile("from=.*&to="))
        pinched = shown_s(page)
        page.get_by_role("button", name="all", exact=True).click()
        expect(page).not_to_have_url(re.compile("from="))
        press(page, "+")  # the half of all
        expect(page).to_have_url(re.compile("from=.*&to="))
        assert 0 < pinched < 0.9 * shown_s(page)


def shown_s(page: Page) -> float:
    """The seconds that the timeline shows, by its link."""
    found = parse_qs(page.url.partition("?")[2])
    return float(found["to"][0]) - float(found["from"][0])
