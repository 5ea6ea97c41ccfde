"""Selects the rows of a capture that go into a file of packets: one end of the connections, and some
exchanges.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.frames import Framed

SeenBy = Literal["client", "broker"]


def seen_by(who: SeenBy, rows: Iterable[Captured]) -> Iterator[Captured]:
    """The rows that passed between klamm and one of its two ends."""
    received = "response" if who == "client" else "request"
    for row in rows:
        if row.kind not in ("frame", "token"):
            yield row
        elif row.side != received:  # sent by that end
            if row.fate != "made":
                yield row
        elif row.fate == "rewritten" and row.forwarded is not None:
            yield row._replace(size=len(row.forwarded), frame=row.forwarded, blanks=row.forwarded_blanks)
        elif row.fate != "withheld":
            yield row


class Selection:
    """A set of exchanges, as one bit for each."""

    def __init__(self, chosen: Iterable[Framed]) -> None:
        self._numbered: dict[CapturedConnection, bytearray] = {}
        self._unnumbered: set[tuple[CapturedConnection, int]] = (
            set()
        )  # responses without a request, by their times
        for one in chosen:
            first = one.exchange.first
            assert first.connection is not None
            bits = self._numbered.setdefault(first.connection, bytearray())
            if first.exchange < 0:
                self._unnumbered.add((first.connection, first.time_ns))
                continue
            place, bit = divmod(first.exchange, 8)
            bits.extend(bytes(max(0, place + 1 - len(bits))))
            bits[place] |= 1 << bit

    def of(self, rows: Iterable[Captured]) -> Iterator[Captured]:
        """The rows of the selected exchanges, and the other rows of their connections."""
        return (row for row in rows if row.connection in self._numbered and self._has(row))

    def _has(self, row: Captured) -> bool:
        if row.kind != "frame":
            return True
        assert row.connection is not None
        if row.exchange < 0:
            return (row.connection, row.time_ns) in self._unnumbered
        place, bit = divmod(row.exchange, 8)
        bits = self._numbered[row.connection]
        return place < len(bits) and bool(bits[place] >> bit & 1)
