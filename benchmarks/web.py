"""The page of `klamm web` in Chromium, while 5,000 exchanges a second pass through klamm, of which its filter
lets one in a hundred through; and the same page over a large capture.
"""

import asyncio
import contextlib
import multiprocessing
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.table import Table

from benchmarks.hostile import broker
from benchmarks.hostile.attacks import At, Attack, connected, frame
from benchmarks.hostile.measuring import cpu_seconds, running
from benchmarks.peer import Absent, free_ports

A_SECOND, EVERY, CONNECTIONS = 5000, 100, 4  # exchanges a second, of which one in EVERY passes the filter
MINUTES = 10.0
FILTER = 'group_id == "rare"'
SIZE: Any = {"width": 1280, "height": 800}
ROWS = 50_000
CPU_S = 15.0
START_S = 60.0
MS_LATE, FRAMES_A_SECOND, MS_FIRST = 300, 50, 2000  # the aims: at most, at least, at most
COMMON, RARE = (
    frame("Heartbeat", 4, {"group_id": group, "member_id": "m"}, client_id="load")
    for group in ("much", "rare")
)
QUIET = Attack("none", None)  # type: ignore[arg-type]

# How late each new row is when it is drawn, and how often a frame is drawn while one scrolls.
LATENESS = """
() => {
  window.late = [];
  let last = null;
  const look = () => {
    const rows = document.querySelectorAll(".row[data-api]");
    const number = (row) => Number(row.dataset.number);
    const newest = [...rows].reduce((a, b) => (!a || number(b) > number(a) ? b : a), null);
    if (newest && newest.dataset.number !== last) {
      last = newest.dataset.number;
      const [hours, minutes, seconds] = newest.firstChild.textContent.split(":").map(Number);
      const now = new Date(), at = new Date(now);
      at.setHours(hours, minutes, Math.floor(seconds), Math.round((seconds % 1) * 1000));
      window.late.push(now - at);
    }
    requestAnimationFrame(look);
  };
  look();
}
"""
SCROLLING = """
(seconds) => new Promise((resolve) => {
  const list = document.querySelector(".list");
  const began = performance.now();
  let frames = 0, down = true;
  const step = () => {
    frames += 1;
    list.scrollTop += down ? 400 : -400;
    if (list.scrollTop + list.clientHeight >= list.scrollHeight - 1) down = false;
    if (list.scrollTop <= 0) down = true;
    const took = (performance.now() - began) / 1000;
    if (took < seconds) requestAnimationFrame(step); else resolve(frames / took);
  };
  requestAnimationFrame(step);
})
"""
Found = dict[str, Any]


def run(console: Console, minutes: float, capture: Path | None) -> Found:
    """The results for JSON. `capture`: a large one, which is opened too."""
    found: Found = {}
    with broker.running() as (port, _), tempfile.TemporaryDirectory(prefix="klamm-web-") as folder:
        with running(QUIET, port, Path(folder)) as (klamm, at), _load(at), _chromium() as browser:
            found["cpu_alone"] = _cpu_share(klamm.pid)
            with _page_of(f"--admin=127.0.0.1:{at.admin}", Path(folder)) as address:
                found |= _live(browser, address, minutes, klamm.pid)
                found |= _scrolled(browser, address)
    if capture is not None:
        with tempfile.TemporaryDirectory(prefix="klamm-web-") as folder, _chromium() as browser:
            with _page_of(str(capture), Path(folder)) as address:
                found |= _of_capture(browser, address)
    console.print(_table(found))
    return found


@contextlib.contextmanager
def _load(at: At) -> Iterator[None]:
    fork = multiprocessing.get_context("fork")
    process = fork.Process(target=_send, args=(at.port,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _send(port: int) -> None:
    async def send() -> None:
        ends = [await connected(port) for _ in range(CONNECTIONS)]
        drains = [asyncio.create_task(_drained(reader)) for reader, _ in ends]
        began, sent = time.monotonic(), 0
        while not any(drain.done() for drain in drains):
            due = int((time.monotonic() - began) * A_SECOND)
            frames = [COMMON if number % EVERY else RARE for number in range(sent, due)]
            for index, (_, writer) in enumerate(ends):
                writer.write(b"".join(frames[index::CONNECTIONS]))
            sent = due
            await asyncio.sleep(0.005)

    asyncio.run(send())


async def _drained(reader: Any) -> None:
    while await reader.read(1 << 16):
        pass


@contextlib.contextmanager
def _page_of(source: str, folder: Path) -> Iterator[str]:
    listen = f"127.0.0.1:{free_ports(1)}"
    command = [str(Path(sys.executable).with_name("klamm")), "web", source, "--listen", listen]
    with (folder / "web.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{listen}/healthz", timeout=1):
                break
            time.sleep(0.02)
        yield f"http://{listen}"
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def _chromium() -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise Absent("chromium is not installed (Debian package chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--enable-precise-memory-info"]
        )
        try:
            yield browser
        finally:
            browser.close()


def _opened(browser: Browser, address: str) -> tuple[Page, float]:
    """The page, and how long its first row took, in ms."""
    page = browser.new_context(viewport=SIZE).new_page()
    page.set_default_timeout(120_000)
    began = time.monotonic()
    page.goto(address)
    page.locator(".row[data-api]").first.wait_for()
    return page, (time.monotonic() - began) * 1000


def _live(browser: Browser, address: str, minutes: float, klamm: int) -> Found:
    page, first_ms = _opened(browser, f"{address}/#exchanges?where={urllib.parse.quote(FILTER)}")
    page.evaluate(LATENESS)
    page.wait_for_timeout(60_000 * min(1.0, minutes / 2))
    early, cpu = _heap(page), _cpu_share(klamm)
    page.wait_for_timeout(60_000 * max(0.0, minutes - 1.0, minutes / 2))
    late = sorted(page.evaluate("window.late"))
    found = {
        "cpu_with_page": cpu,
        "first_row_ms": first_ms,
        "late_ms": {share: late[int(len(late) * share)] for share in (0.5, 0.95, 0.99)},
        "rows_seen": len(late),
        "heap_early_bytes": early,
        "heap_late_bytes": _heap(page),
        "minutes": minutes,
    }
    page.context.close()
    return found


def _cpu_share(pid: int) -> float:
    """Of a core, over CPU_S seconds."""
    began, before = time.monotonic(), cpu_seconds(pid)
    time.sleep(CPU_S)
    return (cpu_seconds(pid) - before) / (time.monotonic() - began)


def _heap(page: Page) -> int:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")
    return int(next(one["value"] for one in metrics["metrics"] if one["name"] == "JSHeapUsedSize"))


def _scrolled(browser: Browser, address: str) -> Found:
    """Frames a second while all 50,000 rows are scrolled through."""
    page, _ = _opened(browser, address)
    while int(page.locator(".list").get_attribute("aria-rowcount") or 0) < ROWS:
        page.wait_for_timeout(500)
    page.get_by_role("button", name="freeze").click()
    frames = page.evaluate(SCROLLING, 10)
    page.context.close()
    return {"scrolling_fps": frames}


def _of_capture(browser: Browser, address: str) -> Found:
    page, first_ms = _opened(browser, address)
    page.context.close()
    return {"capture_first_row_ms": first_ms}


def _table(found: Found) -> Table:
    table = Table(title=f"The page, with {A_SECOND:,} exchanges a second, one in {EVERY} chosen")
    for heading in ("what", "measured", "aim"):
        table.add_column(heading)
    late = found["late_ms"]
    kept = found["cpu_alone"] / found["cpu_with_page"]
    shares = f"{found['cpu_alone']:.1%} to {found['cpu_with_page']:.1%} of a core"
    table.add_row("klamm's CPU, without and with the page", f"{shares}: {kept:.1%} of the throughput", "97%")
    table.add_row("first row after opening", f"{found['first_row_ms']:.0f} ms", f"{MS_FIRST} ms")
    table.add_row(
        "a new row is drawn after",
        ", ".join(f"p{100 * s:.0f} {ms} ms" for s, ms in late.items()),
        f"p95 {MS_LATE} ms",
    )
    table.add_row(
        "scrolling over 50,000 rows", f"{found['scrolling_fps']:.0f} frames/s", f"{FRAMES_A_SECOND}"
    )
    heap = [found[f"heap_{when}_bytes"] / 2**20 for when in ("early", "late")]
    table.add_row(
        f"heap after {found['minutes']:g} minutes", f"{heap[0]:.1f} to {heap[1]:.1f} MiB", "no growth"
    )
    if "capture_first_row_ms" in found:
        table.add_row("first row of a capture", f"{found['capture_first_row_ms']:.0f} ms", "3000 ms")
    return table
