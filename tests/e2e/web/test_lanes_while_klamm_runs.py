"""Lanes in front of a klamm that tells what a test says: what was kept before, what is missing, and where
lanes stand while others come.
"""

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from klamm.client.types import Exchange
from klamm.dashboards.web.live import Live
from klamm.dashboards.web.server import start
from klamm.proxy.config_types import Address
from tests.brokers.processes import wait_for
from tests.dashboards.web.exchanges import exchange
from tests.dashboards.web.talking import Talking, source
from tests.e2e.web.inspector import drawn, filtered, opened, reloaded, violations

LATENCIES = count(1)


class Ground(NamedTuple):
    klamm: Talking
    live: Live
    address: str
    loop: asyncio.AbstractEventLoop

    def tell(self, *ones: Exchange) -> None:
        for one in ones:
            self.loop.call_soon_threadsafe(self.klamm.tell, one)


@pytest.fixture
def ground() -> Iterator[Ground]:
    with served() as found:
        yield found


@contextmanager
def served() -> Iterator[Ground]:
    """A klamm, and the server of its page on a loop of its own."""
    started: Future[tuple[Ground, asyncio.Event]] = Future()

    async def serve() -> None:
        klamm, end = Talking(), asyncio.Event()
        live = source(klamm)
        server = await start(live, Address("127.0.0.1", 0))
        started.set_result((Ground(klamm, live, f"http://{server.address}", asyncio.get_running_loop()), end))
        await end.wait()
        await server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    ground, end = started.result(20)
    try:
        yield ground
    finally:
        ground.loop.call_soon_threadsafe(end.set)
        thread.join(20)
        assert not thread.is_alive()


def beat(group: str, member: str, ago: float = 0.0) -> Exchange:
    sent = {"group_id": group, "generation_id": 1, "member_id": member}
    at = time.time() - ago
    return exchange("Heartbeat", 3, sent, {"error_code": 0}, time=at, latency_ms=next(LATENCIES) / 1000)


def begun(page: Page) -> None:
    """It reads, and has told what was kept."""
    expect(page.locator(".bar .count")).to_contain_text("not all exchanges are here")


def names(page: Page) -> Locator:
    return page.locator(".timeline .name b")


def test_lanes_begin_with_what_the_list_has_got_and_have_it_after_a_reload(
    browser: Browser, ground: Ground
) -> None:
    with opened(browser, ground.address) as page:
        wait_for(lambda: ground.klamm.readers, "a reader of klamm")
        ground.tell(beat("billing", "m-1"), beat("billing", "m-2"))
        expect(page.locator(".row[data-api]")).to_have_count(2)
        page.get_by_role("link", name="groups", exact=True).click()
        expect(names(page)).to_have_text(["▾ billing", "shop (m-1)", "shop (m-2)"])
        told = page.locator(".bar .count")
        expect(told).to_have_text(re.compile(r"^4 marks · not all exchanges are here before [\d:.]{10}$"))
        ground.tell(beat("billing", "m-1"))
        expect(told).to_contain_text("5 marks")
        page.locator(".timeline .name", has_text="m-1").click()
        page.get_by_role("listbox").press("End")
        page.get_by_role("listbox").press("Enter")
        expect(page.locator(".card .told-text")).to_contain_text("heartbeat")
        before, address, mark = told.inner_text(), page.url, page.locator(".card .told-text").inner_text()
        reloaded(page)
        expect(told).to_have_text(before)
        expect(page.locator(".card .told-text")).to_have_text(mark)
        assert page.url == address
        filtered(page, 'member_id == "m-2"')
        expect(told).to_contain_text("2 marks")
        filtered(page, "")
        expect(told).to_have_text(before)


# Is anything in the place of lanes, two frames after the number of marks is there?
EMPTY = """() => new Promise((told) => {
  const look = () => {
    if (/^[1-9]/.test(document.querySelector(".bar .count").textContent)) {
      const empty = document.querySelector(".timeline .nothing");
      requestAnimationFrame(() => requestAnimationFrame(() => told(!empty.hidden)));
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
})"""


def test_the_first_lanes_are_there_with_the_number_of_their_marks(browser: Browser, ground: Ground) -> None:
    with opened(browser, f"{ground.address}/#groups") as page:
        begun(page)
        looking = page.evaluate_handle(f"[({EMPTY})()]")
        ground.tell(beat("billing", "shop-1"))
        assert looking.evaluate("([empty]) => empty") is False


def shade(page: Page) -> str:
    """The colour of the picture near its lower right corner, a second ago or less."""
    drawn(page)
    found: str = page.locator(".timeline canvas").evaluate(
        """(canvas) => {
          const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
          pen.drawImage(canvas, canvas.width - 3, canvas.height - 3, 1, 1, 0, 0, 1, 1);
          return pen.getImageData(0, 0, 1, 1).data.join(" ");
        }"""
    )
    return found


def test_what_was_not_kept_is_grey_and_told_in_words(browser: Browser, ground: Ground) -> None:
    ground.live.kept.add(beat("billing", "m-1", ago=50))
    with opened(browser, f"{ground.address}/#groups") as page:
        begun(page)
        expect(page.get_by_role("group", name="kinds of marks")).to_contain_text("not all exchanges are here")
        for _ in range(6):
            page.get_by_role("button", name="zoom in").click()
        white = shade(page)
        ground.loop.call_soon_threadsafe(ground.klamm.go)
        expect(page.locator("#source.away")).to_be_visible()
        told = page.locator(".bar .count")
        expect(told).to_have_text(
            re.compile(r"^2 marks · not all exchanges are here before [\d:.]{10}, since [\d:.]{10}$")
        )
        assert shade(page) != white
        ground.klamm.away = False
        expect(told).to_have_text(re.compile(r"here before [\d:.]{10}, from [\d:.]{10} to [\d:.]{10}$"))
        wait_for(lambda: shade(page) == white, "the ground of what is read")
        assert violations(page) == []


def test_a_lane_stays_under_the_pointer_while_others_come_above_it(browser: Browser, ground: Ground) -> None:
    with opened(browser, f"{ground.address}/#groups") as page:
        begun(page)
        ground.tell(beat("one", "m-1"), beat("two", "n-1"))
        lane = page.locator(".timeline .name", has_text="n-1")
        lane.hover()
        place = lane.bounding_box()
        for number in range(2, 6):
            ground.tell(beat("one", f"m-{number}"))
            expect(page.locator(".timeline .name", has_text=f"m-{number}")).to_have_count(1)
            drawn(page)
            assert lane.bounding_box() == place
        page.mouse.down()
        page.mouse.up()
        expect(page.locator(".card h2")).to_contain_text("n-1")


def space(page: Page) -> int:
    """Pixels of all lanes."""
    found: int = page.locator(".lane-space").evaluate("space => space.offsetHeight")
    return found


def test_the_chosen_lane_and_the_topmost_in_sight_stay_where_they_are(
    browser: Browser, ground: Ground
) -> None:
    with opened(browser, f"{ground.address}/#groups") as page:
        begun(page)
        ground.tell(beat("one", "m-1"), *(beat("two", f"n-{number}") for number in range(10, 60)))
        lanes = page.get_by_role("listbox")
        chosen, top = (page.locator(".timeline .name", has_text=member) for member in ("n-13", "n-30"))
        chosen.click()
        place = chosen.bounding_box()
        page.mouse.move(5, 5)

        def comes(member: str) -> None:
            """Another lane, above those; their space grows with their number."""
            before = space(page)
            ground.tell(beat("one", member))
            wait_for(lambda: space(page) > before, member)
            drawn(page)

        comes("m-2")
        assert chosen.bounding_box() == place
        page.get_by_role("listbox").press("Escape")
        lanes.evaluate("lanes => lanes.scrollTo(0, 500)")
        drawn(page)
        place = top.bounding_box()
        comes("m-3")
        assert top.bounding_box() == place
        search = page.get_by_role("searchbox", name="find lanes")
        search.fill("n-12")
        expect(page.locator(".timeline .name", has_text="n-12")).to_be_in_viewport()
        search.fill("")
        lanes.evaluate("lanes => lanes.scrollTo(0, 0)")
        comes("m-4")
        assert lanes.evaluate("lanes => lanes.scrollTop") == 0
