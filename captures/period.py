"""A time in a capture, and the exchanges that ended in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from klamm.captures.frames import Framed


class Period(NamedTuple):
    """A start, and an end that is not included, in ns since 1970. None: open."""

    since_ns: int | None = None
    until_ns: int | None = None

    def of(self, exchanges: Iterable[Framed]) -> Iterator[Framed]:
        """The exchanges that ended in it; those without an answer, if they began in it."""
        since, until = self.since_ns or 0, self.until_ns
        for one in exchanges:
            time_ns = one.exchange.last.time_ns
            if time_ns >= since and (until is None or time_ns < until):
                yield one
