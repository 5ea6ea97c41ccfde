"""The web inspector in a real Chromium."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Error,
    Locator,
    Page,
    Request,
    sync_playwright,
)

from tests.brokers.processes import Process, free_ports, wait_for
from tests.e2e.klamm_process import COMMAND, get

ROOT = Path(__file__).parents[3]
AXE = ROOT / ".js" / "node_modules" / "axe-core" / "axe.min.js"
OPTIONS = ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"]
PATIENCE_MS = 60_000
SIZE = {"width": 1280, "height": 800}
NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"  # another test has made a namespace
FORESEEN = ("the server responded with a status of 4", NETWORK_CHANGED)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's Chromium, which can reach this machine only."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "chromium is missing: install the package chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def inspector(log: Path, *words: str) -> Iterator[str]:
    """`klamm web` with these words; the address of its page."""
    at = f"127.0.0.1:{free_ports()}"
    process = Process([str(COMMAND), "web", *words, "--listen", at], log)
    try:
        wait_for(lambda: get(f"http://{at}/healthz") == "ok\n", "klamm web", [process])
        yield f"http://{at}"
    finally:
        assert process.stop() == 0, process.tail()


@contextmanager
def opened(browser: Browser, address: str, **context: Any) -> Iterator[Page]:
    """A page at this address. What its console says, reports of its Content-Security-Policy included, is a
    failure; but for the statuses of refusals, which Chromium reports as errors. A failure tells what the page
    shows, and which requests have no answer.
    """
    said: list[str] = []
    unanswered: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if not any(words in message.text for words in FORESEEN):
            said.append(f"{message.type}: {message.text}")

    def dismiss(dialog: Dialog) -> None:
        said.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    made = browser.new_context(**{"viewport": SIZE, **context})
    made.set_default_timeout(PATIENCE_MS)
    page = made.new_page()
    page.on("console", listen)
    page.on("pageerror", lambda problem: said.append(str(problem)))
    page.on("dialog", dismiss)
    page.on("request", lambda request: unanswered.append(request.url))
    page.on("requestfinished", lambda request: unanswered.remove(request.url))
    page.on("requestfailed", lambda request: unanswered.remove(request.url))
    try:
        visited(page, address)
        try:
            yield page
        except Exception as failure:
            shown = page.inner_text("body")[:2000]
            failure.add_note(f"the console said {said}; unanswered are {unanswered}; the page shows: {shown}")
            raise
        assert not said, said
    finally:
        made.close()


def reloaded(page: Page) -> None:
    """Load the page anew."""
    _load(page, page.reload)


def visited(page: Page, address: str) -> None:
    """Load another page in its place."""
    _load(page, partial(page.goto, address))


def _load(page: Page, load: Callable[[], object]) -> None:
    """Again where a request has ended with the network."""
    ended: list[str] = []

    def note(request: Request) -> None:
        if request.failure == NETWORK_CHANGED:
            ended.append(request.url)

    page.on("requestfailed", note)
    while True:
        ended.clear()
        try:
            load()
        except Error:
            if not ended:
                raise
        if not ended:
            break
        load = page.reload
    page.remove_listener("requestfailed", note)


def violations(page: Page) -> list[str]:
    """What axe-core finds in the page as it is now."""
    assert AXE.exists(), "axe-core is missing; run: make .js/package-lock.json"
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")
    return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]


def contrasts_of_placeholders(page: Page) -> list[float]:
    """Of each input with a placeholder, as WCAG computes it; axe-core does not look at them."""
    found: list[float] = page.evaluate(
        """() => {
          const light = (colour) => {
            const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => {
              const value = part / 255;
              return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
          };
          return [...document.querySelectorAll("[placeholder]")].map((input) => {
            const { color, opacity } = getComputedStyle(input, "::placeholder");
            const both = [light(color), light(getComputedStyle(input).backgroundColor)];
            return opacity === "1" ? Math.max(...both) / Math.min(...both) : 0;
          });
        }"""
    )
    return found


def filtered(page: Page, text: str) -> None:
    """Types a filter; what has been there before is gone then."""
    page.get_by_role("combobox", name="filter", exact=True).fill(text)
    page.keyboard.press("Enter")
    drawn(page)


def drawn(page: Page) -> None:
    """Wait until the page has drawn what it knows: it does at its next frame."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def rows(page: Page) -> Locator:
    """The exchanges of the list."""
    return page.locator(".row[data-api]")
