"""The answers of /v1/counters of the last minutes, compressed, for periods that end now."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from typing import NamedTuple

import msgspec

from klamm.dashboards.terminal.window import Counters
from klamm.dashboards.web.traffic.answers import Asked

MOST_PAGES = 20  # whose first look is kept
GAP_S = 30.0  # nobody looked for so long: what was seen before is of no use for periods
STEPS_S = ((15.0, 0.0), (90.0, 5.0), (400.0, 30.0))  # up to this age, looks are so far apart


class Look(NamedTuple):
    """One answer. `now` is klamm's clock."""

    process: tuple[int, float]
    now: float
    packed: bytes

    @property
    def counters(self) -> Counters:
        found: Counters = msgspec.json.decode(zlib.decompress(self.packed))
        return found


def look(body: bytes) -> Look:
    """An answer as klamm sent it."""
    counters = msgspec.json.decode(body)
    return Look((counters["pid"], counters["started_at"]), counters["now"], zlib.compress(body, 1))


class Looks:
    """The newest last. Those of a klamm that has ended are forgotten."""

    def __init__(self) -> None:
        self.seen: list[Look] = []
        self.first_of: OrderedDict[str, Look] = OrderedDict()  # by page

    @property
    def newest(self) -> Look | None:
        return self.seen[-1] if self.seen else None

    def add(self, one: Look) -> None:
        last = self.newest
        if last is not None and (last.process != one.process or one.now - last.now > GAP_S):
            self.seen.clear()
        self.seen.append(one)
        self.seen = thinned(self.seen, one.now)

    def opened(self, page: str) -> Look | None:
        """The first look of this page, which is the newest one if it has none."""
        if page not in self.first_of and self.newest is not None:
            self.first_of[page] = self.newest
        while len(self.first_of) > MOST_PAGES:
            self.first_of.popitem(last=False)
        if page in self.first_of:
            self.first_of.move_to_end(page)
        return self.first_of.get(page)

    def before(self, asked: Asked) -> Look | None:
        """The look at which the asked period began: None for the start of klamm. It is the newest itself
        where there is no earlier one.
        """
        newest, opened = self.newest, self.opened(asked.page)
        if asked.period == "started" or newest is None:
            return None
        if asked.period == "opened":
            return opened
        begin = newest.now - float(asked.period)
        earlier = self.seen[:-1]
        return min(earlier, key=lambda one: abs(one.now - begin)) if earlier else newest


def thinned(seen: list[Look], now: float) -> list[Look]:
    """Fewer of the older ones, and none of the oldest."""
    kept: list[Look] = []
    for one in seen:
        age = now - one.now
        apart = next((apart for most, apart in STEPS_S if age <= most), None)
        if apart is not None and (not kept or one.now - kept[-1].now >= apart):
            kept.append(one)
    return kept
