"""Keeps the rows of the exchanges for which an expression holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.exchanges import Exchange
from klamm.captures.frames import NAMING, Framing
from klamm.captures.storage.stored import whole
from klamm.rules.expressions import Expression

MOST_BYTES = 4 << 20  # of requests that wait; beyond, the oldest is judged without its answer
Key = tuple[CapturedConnection | None, int]


class Picking:
    """Rows of the exchanges for which it holds; of the rest, the ends of connections and gaps.

    A request waits for its answer and is given with it, so it comes later by as much.
    """

    def __init__(self, where: Expression, most_bytes: int = MOST_BYTES) -> None:
        self._where, self._framing, self._most_bytes = where, Framing(), most_bytes
        self._apis = where.apis()
        self._waiting: dict[Key, Captured] = {}
        self._chosen: set[tuple[int, int]] = set()
        self._bytes = 0

    def keep(self, number: int, correlation_id: int) -> None:
        """The exchange of this connection that is under way, whatever the expression says."""
        self._chosen.add((number, correlation_id))

    def picked(self, rows: Iterable[Captured]) -> list[Captured]:
        return [row for one in rows for row in self._row(one)]

    def rest(self) -> list[Captured]:
        """The rows of requests that still wait for their answers."""
        return [row for key in list(self._waiting) for row in self._judged(self._take(key), None)]

    def _row(self, row: Captured) -> Iterator[Captured]:
        key = row.connection, row.exchange
        if row.kind == "token":
            return
        if row.kind != "frame":
            if row.kind == "closed":
                for left in [left for left in self._waiting if left[0] == row.connection]:
                    yield from self._judged(self._take(left), None)
                if row.connection is not None:
                    self._framing.peers.pop(row.connection, None)
                    self._chosen = {name for name in self._chosen if name[0] != row.connection.number}
            yield row
        elif (
            self._apis
            and row.api_key not in self._apis
            and row.api_key not in NAMING
            and _name(row) not in self._chosen
        ):
            return
        elif row.side == "response":
            yield from self._judged(self._take(key), row)
        elif not row.awaits:
            yield from self._judged(row, None)
        else:
            self._waiting[key] = row
            self._bytes += len(row.frame or b"")
            while self._bytes > self._most_bytes:
                yield from self._judged(self._take(next(iter(self._waiting))), None)

    def _take(self, key: Key) -> Captured | None:
        row = self._waiting.pop(key, None)
        if row is not None:
            self._bytes -= len(row.frame or b"")
        return row

    def _judged(self, request: Captured | None, response: Captured | None) -> Iterator[Captured]:
        both = [row for row in (request, response) if row is not None]
        if not both:
            return
        exchange = Exchange(request and whole(request), response and whole(response))
        framed = self._framing.exchange(exchange)
        chosen = _name(both[0]) in self._chosen
        self._chosen.discard(_name(both[0]))
        if chosen or self._where.holds(framed.request, framed.response):
            yield from both


def _name(row: Captured) -> tuple[int, int]:
    return row.connection.number if row.connection else -1, row.correlation_id
