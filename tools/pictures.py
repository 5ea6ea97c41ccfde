"""Take the pictures in docs/images anew, from a run of `klamm demo`: python -m tools.pictures [NAME...]

`screen` is the view of `klamm demo` and `top` that of `klamm top`, in a terminal (tmux, 100x32); a viewer
draws them with a font of its own machine, and fetches nothing. `inspector` and `report` are pages in
Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from klamm.client import Klamm

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PICTURE, TOP = IMAGES / "screen.svg", IMAGES / "top.svg"
COLUMNS, LINES = 100, 32
READY = re.compile(r" up 0:(2[6-9]|[3-5]\d)  Ctrl-C ends")
LISTEN, ADMIN, WEB = "127.0.0.1:28092", "127.0.0.1:28091", "127.0.0.1:28090"  # of the demo
PATIENCE_S, CAPTURED_S = 60.0, 20.0
SIZE: Any = {"width": 1280, "height": 800}
SHOWN = "error == NOT_LEADER_OR_FOLLOWER and api == Produce"  # the exchange in the picture of the inspector
FONTS = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
THEME = TerminalTheme(  # background, foreground, black to white, the same bright
    (13, 17, 23),
    (230, 237, 243),
    [(72, 79, 88), (255, 123, 114), (63, 185, 80), (210, 153, 34),
     (88, 166, 255), (188, 140, 255), (57, 197, 207), (177, 186, 196)],
    [(139, 148, 158), (255, 161, 152), (86, 211, 100), (227, 179, 65),
     (121, 192, 255), (210, 168, 255), (86, 212, 221), (255, 255, 255)],
)  # fmt: skip


Screen = Callable[[bool], str]  # the text of a terminal, with colours where asked


def main(names: Sequence[str]) -> int:
    """Writes the pictures; 1 where a program is missing, or the demo does not come up."""
    wanted = names or list(PICTURES)
    if unknown := set(wanted) - set(PICTURES):
        print(f"no picture {unknown.pop()!r}: there are {', '.join(PICTURES)}", file=sys.stderr)
        return 1
    for program in ("tmux", "chromium"):
        if shutil.which(program) is None:
            print(f"{program} is missing: install the package {program}", file=sys.stderr)
            return 1
    with demo() as shown:
        for name in wanted:
            print(f"{name}: {PICTURES[name](shown):,} bytes")
    return 0


@contextmanager
def demo() -> Iterator[Screen]:
    """The screen of a demo that has run for half a minute. Raises TimeoutError where it does not draw."""
    with terminal(klamm(), "demo", "--listen", LISTEN) as screen:
        until(lambda: READY.search(screen(False)) is not None, screen)
        yield screen


def klamm() -> str:
    return str(Path(sys.executable).with_name("klamm"))


def until(true: Callable[[], bool], screen: Screen) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not true():
        if time.monotonic() > ends:
            raise TimeoutError(f"not drawn in {PATIENCE_S:.0f} s:\n{screen(False)}")
        time.sleep(0.5)


def screen_picture(screen: Screen) -> int:
    return written(PICTURE, drawn(screen(True), "klamm demo"))


def top_picture(_: Screen) -> int:
    with terminal(klamm(), "top", "--admin", ADMIN) as screen:
        until(lambda: "Produce" in screen(False), screen)
        time.sleep(5)  # the rates of some intervals
        return written(TOP, drawn(screen(True), "klamm top"))


def inspector_picture(_: Screen) -> int:
    """An exchange with an error, its fields beside its bytes."""
    with page() as it:
        it.goto(f"http://{WEB}/#exchanges?where={quote(SHOWN)}")
        row = it.locator('.row[data-api="Produce"]').first
        row.wait_for(timeout=1000 * PATIENCE_S)
        it.get_by_role("button", name="freeze").click()
        row.click()
        it.locator(".field.error").first.hover()
        return shot(it, "inspector.png")


def report_picture(_: Screen) -> int:
    """The beginning of the report about a capture of the demo."""
    it = Klamm(ADMIN)
    with tempfile.TemporaryDirectory() as folder:
        captured, report = Path(folder) / "captured", Path(folder) / "report.html"
        it.begin_capture(str(captured))
        time.sleep(CAPTURED_S)
        it.end_capture()
        subprocess.run([klamm(), "analyze", str(captured), "--html", str(report)], check=True)
        with page() as shown:
            shown.goto(report.as_uri())
            return shot(shown, "report.png")


@contextmanager
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser.new_context(viewport=SIZE, color_scheme="light").new_page()
        finally:
            browser.close()


def shot(it: Page, name: str) -> int:
    return len(it.screenshot(path=IMAGES / name))


PICTURES: dict[str, Callable[[Screen], int]] = {
    "screen": screen_picture,
    "top": top_picture,
    "inspector": inspector_picture,
    "report": report_picture,
}


def written(path: Path, text: str) -> int:
    path.write_text(text, encoding="utf-8")
    return len(text.encode())


@contextmanager
def terminal(*command: str) -> Iterator[Callable[[bool], str]]:
    """Runs a command in a terminal; gives a function that reads its screen, with colours where asked."""
    with tempfile.TemporaryDirectory() as folder:
        tmux = ["tmux", "-S", f"{folder}/socket", "-f", "/dev/null"]
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        subprocess.run([*tmux, "new-session", "-d", *size, *command], check=True)

        def screen(colours: bool) -> str:
            capture = [*tmux, "capture-pane", "-p", *(["-e"] if colours else [])]
            return subprocess.run(capture, check=True, capture_output=True, text=True).stdout

        try:
            yield screen
        finally:
            subprocess.run([*tmux, "kill-server"], check=False)


def drawn(screen: str, title: str) -> str:
    """Text with a terminal's escape codes as SVG."""
    console = Console(
        record=True, width=COLUMNS, file=StringIO(), color_system="standard", force_terminal=True
    )
    console.print(Text.from_ansi(screen.rstrip("\n")), no_wrap=True, overflow="crop")
    form = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", FONTS).replace(
        "font-family: arial", "font-family: sans-serif"
    )
    return console.export_svg(title=title, theme=THEME, code_format=form, unique_id="klamm")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
