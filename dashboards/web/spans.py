"""The times in which klamm told its exchanges to any page, each with the filter that chose among them, and
the parts of time that are missing between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgspec import Struct

from klamm.dashboards.web.history import passes
from klamm.dashboards.web.source import Found, Part

MOST = 1000  # spans that are over; the oldest are forgotten first
LATE_S = 0.25  # from the end of an exchange until a reader has it, at most
BEHIND_S = 1.0  # from the end of an exchange until a reader has it: then klamm tells more than it can take
AROUND_S = 0.001  # exchanges that ended with lost ones may be told or lost


class Wanted(NamedTuple):
    """A filter: the exchanges for which `where` holds, without the kinds of `hide`."""

    where: str | None
    hide: tuple[str, ...]


class Span(Struct, eq=False):
    """klamm told all exchanges of a filter from `since` to `until`, which is None while it goes on. `newest`:
    the end of the last one, where its reader is behind. In seconds since 1970, by klamm's clock.
    """

    wanted: Wanted
    since: float
    until: float | None = None
    newest: float | None = None

    @property
    def got(self) -> float | None:
        """Its reader has got all that ended before; None: up to now."""
        return self.newest if self.until is None else self.until


class Spans:
    """Those of all readers. `now`: the time by klamm's clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.open: list[Span] = []
        self.over: deque[Span] = deque(maxlen=MOST)

    @contextmanager
    def reading(self, wanted: Wanted) -> Iterator[Span]:
        """A span for as long as klamm is read. What ends just before it goes away does not come."""
        span = Span(wanted, self.now())
        self.open.append(span)
        try:
            yield span
        finally:
            self.open.remove(span)
            span.until = max(span.since, self.now() - LATE_S if span.newest is None else span.newest)
            self.over.append(span)

    def told(self, span: Span, found: Found) -> float | None:
        """klamm has told these exchanges. Where it lost some behind them, another span begins behind those;
        the end of the one before.
        """
        if found.exchanges:
            ended = found.exchanges[-1][1].time
            span.newest = ended if self.now() - ended > BEHIND_S else None
        return None if found.lost is None else self._lost(span, found.lost)

    def _lost(self, span: Span, part: Part) -> float:
        assert part.until is not None
        until = max(span.since, part.since - AROUND_S)
        self.over.append(Span(span.wanted, span.since, until))
        span.since = max(until, part.until + AROUND_S)
        return until

    def missing(self, wanted: Wanted, since: float, kept: float, own: Span | None = None) -> list[Part]:
        """The parts of the time from `since` on in which not all exchanges of this filter were read; what was
        read before `kept` is not there any more, and what readers of other spans than `own` have not got yet
        does not count. The oldest comes first.
        """
        read = [span for span in (*self.over, *self.open) if passes(*span.wanted, *wanted)]
        found, at = list[Part](), since
        for span in sorted(read, key=lambda span: span.since):
            begin, until = max(span.since, kept), None if span is own else span.got
            if until is not None and until <= max(at, kept):
                continue
            if begin > at:
                found.append(Part(at, begin))
            if until is None:
                return found
            at = until
        return [*found, Part(at)]
