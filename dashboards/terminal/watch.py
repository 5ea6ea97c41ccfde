"""The loop at the edge: ask klamm once a second, draw what changed in the last five."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from klamm.dashboards.terminal.frame import frame
from klamm.dashboards.terminal.window import Counters, window

EVERY_S = 1.0
WINDOW = 5  # answers that rates and latencies are of
PAST = 240  # rates kept for the bars
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


class View:
    """What the pictures are drawn from: the answers of the last seconds, and the rates before them."""

    def __init__(self) -> None:
        self.answers: deque[Counters] = deque(maxlen=WINDOW + 1)
        self.rates: deque[float] = deque(maxlen=PAST)

    def add(self, answer: Counters) -> None:
        """The next answer; one of another process starts the view anew."""
        if self.answers:
            if (self.answers[-1]["pid"], self.answers[-1]["started_at"]) != (
                answer["pid"],
                answer["started_at"],
            ):
                self.answers.clear()
            else:
                step = window(self.answers[-1], answer)
                self.rates.append(step.total.requests / step.seconds)
        self.answers.append(answer)

    def picture(self, notice: str = "") -> RenderableType:
        """The frame of now."""
        if not self.answers:
            return Text(notice or "waiting for klamm")
        previous = self.answers[0] if len(self.answers) > 1 else None
        return frame(previous, self.answers[-1], tuple(self.rates), notice)


def watch(
    admin: str,
    console: Console,
    until: Callable[[], bool] = lambda: False,
    *,
    answer: Callable[[str], Counters] = ask,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> None:
    """Draw full-screen until `until` says so; KeyboardInterrupt ends it too, and passes on."""
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
            live.update(view.picture(notice), refresh=True)
            sleep(max(EVERY_S - (now() - started), 0.0))
