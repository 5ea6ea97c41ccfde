"""The page while klamm is away, and when it is back."""

import re
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import TimeoutError, expect

from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import COMMAND, Klamm
from tests.e2e.web.inspector import chromium, filtered, inspector, opened, reloaded

pytestmark = pytest.mark.brokers
SHOWN_MS = 1000  # until a row that comes is drawn, as a rule


def test_an_open_page_says_that_klamm_is_away_and_goes_on_when_it_is_back(
    kafka: Cluster, tmp_path: Path
) -> None:
    host, port, admin = "127.0.0.1", free_block("127.0.0.1"), f"127.0.0.1:{free_ports()}"
    words = [str(COMMAND), "run", kafka.bootstrap(), "--listen", f"{host}:{port}-{port + 99}"]
    words += ["--admin", admin, "--state", "none"]

    def started(number: int) -> Klamm:
        klamm = Klamm(Process(words, tmp_path / f"klamm-{number}.log"), host, port, admin)
        wait_for(klamm.ready, "klamm", [klamm.process])
        return klamm

    klamm = started(1)
    try:
        with (
            inspector(tmp_path / "web.log", "--admin", admin) as address,
            chromium() as browser,
            opened(browser, address) as page,
            opened(browser, f"{address}/#groups") as groups,
        ):
            lanes, missing = groups.locator(".timeline .name:not(.group)"), groups.locator(".bar .count")
            expect(missing).to_contain_text("not all exchanges are here")

            def beaten(member: str, more: int) -> bool:
                """A heartbeat of a member of its own."""
                asked = {"group_id": "beats", "generation_id": 1, "member_id": member}
                ask(klamm.address, "Heartbeat", 4, asked)
                return lanes.count() >= more

            wait_for(lambda: beaten("before", 1), "a lane")
            filtered(page, "api == Metadata")
            rows = page.locator('.row[data-api="Metadata"]')

            def seen(more: int) -> bool:
                """A request, until the page shows it: each further one pushes the first rows out of sight."""
                ask(klamm.address, "Metadata", 12, {"topics": []})
                with suppress(TimeoutError):
                    rows.nth(more - 1).wait_for(timeout=SHOWN_MS)
                return rows.count() >= more

            wait_for(lambda: seen(1), "a row")
            klamm.process.child.send_signal(signal.SIGKILL)
            klamm.process.child.wait()
            expect(page.locator("#source.away")).to_contain_text("no klamm answers")
            expect(missing).to_have_text(re.compile(r"before [\d:.]{10}, since [\d:.]{10}$"))
            shown = rows.count()
            assert shown >= 1
            filtered(page, "api == Produce")
            expect(rows).to_have_count(0)
            filtered(page, "api == Metadata")
            expect(rows).to_have_count(shown)
            reloaded(page)
            expect(rows).to_have_count(shown)
            expect(page.locator("#source.away")).to_contain_text("no klamm answers")
            klamm = started(2)
            expect(page.locator("#source")).to_have_text(f"klamm at {admin}")
            wait_for(lambda: seen(shown + 1), "one more row")
            note = page.locator(".row.note", has_text="restarted")
            told = r"^klamm was restarted at [\d:]{8}: connections are numbered from 1 again$"
            expect(note).to_have_text(re.compile(told))
            place = note.get_attribute("data-number") or ""
            assert int(place) - shown in (0, 1)  # behind one about the filter that was in force for a while
            filtered(page, "api == Metadata and connection > 0")
            expect(note).to_have_attribute("data-number", place)
            page.get_by_role("grid").focus()
            page.keyboard.press("Home")
            for _ in range(int(place)):
                page.keyboard.press("ArrowDown")
            expect(page.locator(".detail")).to_contain_text(
                "another one than that of the same number above it"
            )
            page.keyboard.press("Escape")
            expect(page.locator(".detail")).to_be_hidden()
            reloaded(page)
            expect(note).to_have_attribute("data-number", place)
            expect(missing).to_have_text(re.compile(r"before [\d:.]{10}, from [\d:.]{10} to [\d:.]{10}$"))
            wait_for(lambda: beaten("after", 2), "a lane of the other klamm")
            told, names = missing.inner_text().partition("not all")[2], lanes.locator("b").all_inner_texts()
            reloaded(groups)
            expect(lanes.locator("b")).to_have_text(names)
            expect(missing).to_contain_text(told)
    finally:
        klamm.process.stop()
