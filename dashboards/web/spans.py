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
from klamm.dashboards.web.source import Part

MOST = 1000  # spans that are over; the oldest are forgotten first
LATE_S = 0.25  # from the end of an exchange until a reader has it, at most


class Wanted(NamedTuple):
    """A filter: the exchanges for which `where` holds, without the kinds of `hide`."""

    where: str | None
    hide: tuple[str, ...]


class Span(Struct, eq=False):
    """klamm told all exchanges of a filter from `since` to `until`, which is None while it goes on. `heard`:
    when it told some last. In seconds since 1970, by klamm's clock.
    """

    wanted: Wanted
    since: float
    heard: float
    until: float | None = None


class Spans:
    """Those of all readers. `now`: the time by klamm's clock."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.open: list[Span] = []
        self.over: deque[Span] = deque(maxlen=MOST)

    @contextmanager
    def reading(self, wanted: Wanted) -> Iterator[Span]:
        """A span for as long as klamm is read. What ends just before it goes away does not come."""
        now = self.now()
        span = Span(wanted, now, now)
        self.open.append(span)
        try:
            yield span
        finally:
            self.open.remove(span)
            span.until = max(span.since, self.now() - LATE_S)
            self.over.append(span)

    def heard(self, span: Span, dropped: int) -> float | None:
        """klamm told something. Where it dropped exchanges another span begins; the end of the one before."""
        now, until = self.now(), None
        if dropped:
            until = max(span.since, span.heard - LATE_S)
            self.over.append(Span(span.wanted, span.since, until, until))
            span.since = now
        span.heard = now
        return until

    def missing(self, wanted: Wanted, since: float, kept: float) -> list[Part]:
        """The parts of the time from `since` on in which not all exchanges of this filter were read; what was
        read before `kept` is not there any more. The oldest comes first.
        """
        read = [span for span in (*self.over, *self.open) if passes(*span.wanted, *wanted)]
        found, at = list[Part](), since
        for span in sorted(read, key=lambda span: span.since):
            begin = max(span.since, kept)
            if span.until is not None and span.until <= max(at, kept):
                continue
            if begin > at:
                found.append(Part(at, begin))
            if span.until is None:
                return found
            at = span.until
        return [*found, Part(at)]
