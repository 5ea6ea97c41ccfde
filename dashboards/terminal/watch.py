"""The loop at the edge: ask klamm once a second, draw what changed in the last five."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from klamm.dashboards.terminal.frame import frame
from klamm.dashboards.terminal.history import History
from klamm.dashboards.terminal.window import Counters

EVERY_S = 1.0
TIMEOUT_S = 3.0


class NoAnswer(Exception):
    """klamm did not answer; the text says why."""


def ask(admin: str) -> dict[str, Any]:
    """The counters of the klamm whose admin address is "host:port". Raises NoAnswer."""
    try:
        # Without the proxies of the environment: they are for other networks than the one klamm is in.
        with build_opener(ProxyHandler({})).open(f"http://{admin}/v1/counters", timeout=TIMEOUT_S) as answer:
            counters: dict[str, Any] = json.load(answer)
            return counters
    except URLError as error:
        reason = error.reason
        raise NoAnswer(getattr(reason, "strerror", None) or str(reason)) from error
    except (OSError, ValueError) as error:
        raise NoAnswer(str(error)) from error


class View(History):
    """The data of the pictures."""

    def picture(self, notice: str = "", page: str = "") -> RenderableType:
        """The frame of now."""
        if not self.answers:
            return Text(notice or "waiting for klamm")
        return frame(self.previous, self.answers[-1], tuple(self.rates), notice, page)


def watch(
    admin: str,
    console: Console,
    until: Callable[[], bool] = lambda: False,
    *,
    page: str = "",
    answer: Callable[[str], Counters] = ask,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Draw full-screen until `until` says so; KeyboardInterrupt ends it too, and passes on. `page`: the
    address of the inspector.
    """
    view = View()
    silent_since: float | None = None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while not until():
            started = now()
            notice = ""
            try:
                view.add(answer(admin))
                silent_since = None
            except NoAnswer as error:
                silent_since = started if silent_since is None else silent_since
                notice = f"no answer from {admin} for {started - silent_since:.0f} s: {error}"
            live.update(view.picture(notice, page), refresh=True)
            sleep(max(EVERY_S - (now() - started), 0.0))
