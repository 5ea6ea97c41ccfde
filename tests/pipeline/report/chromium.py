"""A page in real Chromium: what became of it, what its console said, and what it wanted from the network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--disable-extensions",
    ),
    "--host-resolver-rules=MAP * ~NOTFOUND",  # requests of the browser itself stay on this machine
    *("--virtual-time-budget=20000", "--enable-logging=stderr"),
)
CONSOLE = re.compile(r":CONSOLE[:(]\d+\)?\] (.*)")
PATIENCE_S = 120.0
NOBODY = "not an origin"


class Opened(NamedTuple):
    """`dom`: the document at its end; `console`: its lines; `wanted`: URLs that were asked for."""

    dom: str
    console: list[str]
    wanted: list[str]


def opened(page: Path, folder: Path, width: int = 1400) -> Opened:
    """Its own profile is in `folder`. `width` in pixels; a window has at least 500."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "chromium is missing: install the package chromium"
    log = folder / "net.json"
    own = [f"--user-data-dir={folder}/profile", f"--log-net-log={log}", f"--window-size={width},2000"]
    own += ["--dump-dom", page.as_uri()]
    done = subprocess.run(
        [program, *OPTIONS, *own], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    return Opened(done.stdout, CONSOLE.findall(done.stderr), _wanted(json.loads(log.read_text())))


def _wanted(log: dict[str, Any]) -> list[str]:
    """URLs that the page asked for, by the network log: the browser's own requests have no origin."""
    asked = [event.get("params", {}) for event in log["events"]]
    return sorted({one["url"] for one in asked if one.get("initiator", NOBODY) != NOBODY and "url" in one})
