"""Times of a capture, as people write them, and the exchanges that ended between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, time
from typing import NamedTuple

from klamm.captures.frames import Framed
from klamm.cli.saying import WrongWord


class Period(NamedTuple):
    """From, and up to before, ns since 1970. None: without a beginning, without an end."""

    since_ns: int | None = None
    until_ns: int | None = None

    def of(self, exchanges: Iterable[Framed]) -> Iterator[Framed]:
        """Those that ended in it; without an answer, those that were asked in it."""
        since, until = self.since_ns or 0, self.until_ns
        for one in exchanges:
            time_ns = one.exchange.last.time_ns
            if time_ns >= since and (until is None or time_ns < until):
                yield one


def moment(option: str, text: str | None, first_ns: int) -> int | None:
    """2026-11-21T15:30:12.5, or 15:30 on the day of `first_ns`, as ns since 1970; local time where the text
    names no other. Raises WrongWord.
    """
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        try:
            found = datetime.combine(datetime.fromtimestamp(first_ns / 1e9), time.fromisoformat(text))
        except ValueError:
            raise WrongWord(f"{option} {text}: write it as 15:30:12.5, or 2026-11-21T15:30:12.5") from None
    return round(found.replace(microsecond=0).timestamp()) * 10**9 + found.microsecond * 1000
