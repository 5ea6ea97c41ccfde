"""Exchanges that a command looks for in captures, and what it says where it has found none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from klamm.captures.captured import Captured
from klamm.captures.choosing import chosen
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.frames import Framed
from klamm.captures.period import Period
from klamm.captures.summaries.timeline import exchanges_in
from klamm.cli.captures.capture_files import FINE, LOST
from klamm.cli.saying import say
from klamm.rules.expressions import Expression
from klamm.rules.expressions.work import OFFLINE

if TYPE_CHECKING:
    from klamm.captures.storage.reading import Reading

KEEP = "klamm run --capture-records keep, or klamm import --records keep, has them"
KEPT = {
    "blank": f"records are blanked in this capture ({KEEP})",
    "hash": f"records are hashed in this capture ({KEEP})",
}


class Search:
    """Finds the exchanges of a period for which `where` holds, and counts them."""

    def __init__(self, where: Expression | None = None, period: Period | None = None) -> None:
        self.where, self.period = where, period or Period()
        self.found = 0

    def of(self, rows: Iterable[Captured]) -> Iterator[Framed]:
        """The exchanges in the order of their ends."""
        return self.among(exchanges(rows))

    def among(self, some: Iterable[Exchange], topics: Mapping[bytes, str] | None = None) -> Iterator[Framed]:
        """Filters `some`, and keeps their order. `topics`: names of topic ids that are known before."""
        self.found = 0
        for one in self.period.of(chosen(some, self.where, topics)):
            self.found += 1
            yield one

    def say_nothing_found(self, captures: Reading) -> None:
        """If so, and why, as far as that is known. Reads the captures once more, but no bodies."""
        if self.found or (self.where is None and self.period == Period()):
            return
        segments = captures.segments()
        matched = "matched" if self.where is not None else "lie in that time"
        seen = exchanges_in(captures)
        say(f"0 of {seen:,} exchange{'s' * (seen != 1)} {matched}", 0)
        if self.period != Period() and segments:
            times = (min(one.first_ns for one in segments), max(one.last_ns for one in segments))
            begin, end = (f"{datetime.fromtimestamp(ns / 1e9):%Y-%m-%d %H:%M:%S.%f}"[:-3] for ns in times)
            say(f"the capture covers {begin} to {end}", 0)
        if self.where is not None and self.where.reads_records:
            for kept in sorted({one.origin.records for one in segments} & KEPT.keys()):
                say(KEPT[kept], 0)

    def say_unjudged(self) -> int:
        """If so, that exchanges are missing because the expression takes too much work; 1 then."""
        count = 0 if self.where is None else self.where.unjudged
        if not count:
            return FINE
        frames = f"{count:,} frame{'s' * (count != 1)}"
        return say(f"left out: {frames} on which the expression takes more than {OFFLINE:,} steps", LOST)
