"""Timelines of captures: the order of lanes, marks under the pointer, and more than a page holds."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.captures.rows import START_NS, Talk, connection, in_time, written
from tests.e2e.web.inspector import filtered, inspector, opened

EXCHANGES, EVERY_MS = 52_000, 100.0  # more than are read at once
START_S = START_NS / 1e9


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Heartbeats of one member; the first is refused."""
    folder = tmp_path_factory.mktemp("long")
    talk = Talk().opened().heartbeat(25)
    for _ in range(EXCHANGES):
        talk.heartbeat(took_ms=EVERY_MS)
    with inspector(folder / "web.log", str(written(folder / "a.arrow", talk.rows))) as found:
        yield found


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with opened(browser, f"{address}/#groups") as found:
        expect(found.locator(".count")).to_contain_text("not all is read")
        yield found


def test_the_newest_marks_are_kept_and_errors_longer_than_heartbeats(page: Page) -> None:
    expect(page.locator(".count")).to_have_text(
        re.compile(r"^20,000 marks · the newest 20,000 are kept: 3\d,\d{3} older ones are left out · not all")
    )
    page.get_by_role("button", name="next problem").click()
    expect(page.locator('.timeline .told[role="option"]')).to_contain_text("UNKNOWN_MEMBER_ID")
    page.get_by_role("listbox").press("End")
    expect(page.locator('.timeline .told[role="option"]')).to_contain_text("heartbeat")


def test_the_part_of_a_capture_that_was_not_read_is_read_when_it_is_chosen(page: Page) -> None:
    late = START_S + (EXCHANGES - 1000) * EVERY_MS / 1000
    base = page.url.partition("#")[0]
    page.goto(f"{base}#groups?from={late}&to={late + 60}")
    page.get_by_role("button", name="read this part").click()
    expect(page).to_have_url(re.compile("since=.*until="))
    expect(page.locator(".count")).to_have_text(re.compile(r"^60[0-3] marks$"))
    page.get_by_role("button", name="read all").click()
    expect(page).not_to_have_url(re.compile("since="))
    expect(page.locator(".count")).to_contain_text("not all is read")


def test_a_filter_chooses_what_is_read(page: Page) -> None:
    filtered(page, "error != NONE")
    expect(page.locator(".count")).to_have_text(re.compile(r"^\d marks?$"))
    filtered(page, "acsk == 1")
    expect(page.get_by_role("alert").filter(has_text="did you mean acks?")).to_be_visible()


def test_lanes_are_found_by_their_text(page: Page) -> None:
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="find lanes")
    expect(field).to_be_focused()
    field.fill("no such lane")
    expect(page.locator(".nothing")).to_have_text("no lane has this text")
    field.fill("BILL")
    expect(page.locator(".timeline .name.group")).to_have_count(1)


JOIN = {"session_timeout_ms": 6000, "protocol_type": "consumer", "member_id": "", "protocols": []}
JOINED = {"error_code": 0, "generation_id": 1, "protocol_name": "range", "leader": "m", "member_id": "m"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A group without problems, one that had a rebalance, and one with an error, 10 s after the first."""
    folder = tmp_path_factory.mktemp("small")
    talks = [Talk(connection(number)).opened() for number in range(3)]
    talks[0].heartbeat(group="a-calm")
    request, answer = {"group_id": "b-rebalanced", **JOIN}, {**JOINED, "members": []}
    talks[1].exchange("JoinGroup", 4, request, answer)
    talks[2].now_ms = 10_000.0
    talks[2].heartbeat(25, group="c-failed")
    capture = written(folder / "a.arrow", in_time(*talks))
    with inspector(folder / "web.log", str(capture)) as found:
        yield found


def test_what_has_errors_comes_first(browser: Browser, small: str) -> None:
    with opened(browser, f"{small}/#groups") as page:
        expect(page.locator(".timeline .name.group b")).to_have_text(
            ["▾ c-failed", "▾ b-rebalanced", "▾ a-calm"]
        )
        expect(page.locator(".timeline .name.group .sums")).to_have_text(["1 ✕ 1 ▲", "1 ▲", ""])


def test_a_mark_is_told_and_opened_by_the_pointer(browser: Browser, small: str) -> None:
    with opened(browser, f"{small}/#groups?from={START_S + 9}&to={START_S + 11}") as page:
        expect(page.locator(".timeline .name")).to_have_count(6)
        box, names = page.locator(".timeline canvas").bounding_box(), page.locator(".timeline .name").nth(1)
        row = names.bounding_box()
        assert box is not None
        assert row is not None
        x, y = box["x"] + box["width"] / 2, row["y"] + row["height"] / 2
        page.mouse.move(x, y)
        hint = page.locator('.timeline .told[aria-hidden="true"]')
        expect(hint).to_contain_text("heartbeat: UNKNOWN_MEMBER_ID")
        page.mouse.click(x, y)
        expect(page.locator(".detail")).to_contain_text("Heartbeat v4")
        expect(page.locator("dd.errors")).to_have_text("UNKNOWN_MEMBER_ID")
        expect(hint).to_be_hidden()
