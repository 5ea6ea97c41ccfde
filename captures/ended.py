"""Exchanges that ended within a time, read from that part of a capture, and each of them whole: its request
may have come long before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from klamm.captures.captured import Captured
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.period import Period
from klamm.captures.storage.reading import read
from klamm.captures.summaries.columns import Keys, Name, Texts, frames, numbered, together

if TYPE_CHECKING:
    import pyarrow as pa

    from klamm.captures.storage.reading import Keep, Reading

Noting = Callable[[Iterable[Captured]], Iterator[Captured]]
WANTED = ("time_ns", "kind", "capture", "connection", "side", "exchange", "awaits")
LOOK_NS, FURTHER = 1_000_000_000, 4  # beyond a border so far, then so many times as far
NEAR_NS = 50_000_000  # requests that are no further apart are read together


class Ended:
    """The exchanges of a capture that ended in a period, in the order of their ends; of those without an
    answer, the ones that began in it. Each iteration reads anew. `keep` and `problems` are those of a
    Reading; the rows of which exchanges are made go through `noting`.
    """

    def __init__(
        self, paths: Sequence[str], period: Period, keep: Keep | None = None, noting: Noting = iter
    ) -> None:
        self._paths, self._period, self._keep, self._noting = paths, period, keep, noting
        self._keys = Keys()
        self._inside = self._reading(period)

    @property
    def problems(self) -> list[str]:
        return self._inside.problems

    def __iter__(self) -> Iterator[Exchange]:
        if self._period == Period():
            yield from exchanges(self._noting(self._inside))
            return
        began, open_ = self._crossing()
        later = self._answered_later(open_)
        for one in exchanges(self._noting(self._rows(self._asked_earlier(began)))):
            if one.response is not None or _name(one.first) not in later:
                yield one

    def _crossing(self) -> tuple[Any, Any]:
        """Keys of the exchanges whose request, and of those whose answer, is not in the period."""
        import pyarrow as pa
        import pyarrow.compute as pc

        asked, answered = [], []
        for table, texts in self._tables(self._inside, self._period):
            asked += table.filter(_asking(table, texts))["key"].chunks
            numbered_answers = pc.and_(
                frames(table, texts, "response"), pc.greater_equal(table["exchange"], 0)
            )
            answered += table.filter(numbered_answers)["key"].chunks
        all_asked, all_answered = (pa.chunked_array(found, pa.int64()) for found in (asked, answered))
        return _without(all_answered, all_asked), _without(all_asked, all_answered)

    def _asked_earlier(self, keys: Any) -> list[tuple[int, int]]:
        """The times and keys of these requests, as far as they are in the capture; the earliest first."""
        until = self._period.since_ns
        if until is None:
            return []
        first = min((one.first_ns for one in read(self._paths).segments()), default=until)
        found: list[tuple[int, int]] = []
        look = LOOK_NS
        while len(keys) and until > first:
            period = Period(until - look, until)
            for table, texts in self._tables(self._reading(period), period):
                asked = _of(table.filter(_asking(table, texts)), keys)
                found += zip(asked["time_ns"].to_pylist(), asked["key"].to_pylist(), strict=True)
                keys = _without(keys, asked["key"])
            until, look = until - look, look * FURTHER
        return sorted(found)

    def _answered_later(self, keys: Any) -> set[Name]:
        """The names of those that are answered after the period."""
        since = self._period.until_ns
        if since is None:
            return set()
        last = max((one.last_ns for one in read(self._paths).segments()), default=since)
        found: set[Name] = set()
        look = LOOK_NS
        while len(keys) and since <= last:
            period = Period(since, since + look)
            for table, texts in self._tables(self._reading(period), period):
                answered = _of(table.filter(frames(table, texts, "response")), keys)
                found.update(map(self._keys.name, answered["key"].to_pylist()))
                keys = _without(keys, answered["key"])
            since, look = since + look, look * FURTHER
        return found

    def _rows(self, earlier: list[tuple[int, int]]) -> Iterator[Captured]:
        """The requests that came earlier, then the rows of the period."""
        wanted = {self._keys.name(key) for _, key in earlier}
        for first_ns, last_ns in _ranges([time_ns for time_ns, _ in earlier]):
            for row in self._reading(Period(first_ns, last_ns + 1)):
                if row.kind == "frame" and row.side == "request" and _name(row) in wanted:
                    yield row
        yield from self._inside

    def _tables(self, reading: Reading, period: Period) -> Iterator[tuple[pa.Table, Texts]]:
        """Rows of the period that have a connection, with their keys."""
        import pyarrow.compute as pc

        for batches in together(reading.batches(WANTED)):
            table, texts = numbered(batches)
            table = table.filter(pc.is_valid(table["connection"]))
            if period.since_ns is not None:
                table = table.filter(pc.greater_equal(table["time_ns"], period.since_ns))
            if period.until_ns is not None:
                table = table.filter(pc.less(table["time_ns"], period.until_ns))
            if table.num_rows:
                yield table.append_column("key", self._keys.of(table, texts)), texts

    def _reading(self, period: Period) -> Reading:
        return read(self._paths, since_ns=period.since_ns, until_ns=period.until_ns, keep=self._keep)


def _asking(table: pa.Table, texts: Texts) -> Any:
    import pyarrow.compute as pc

    return pc.and_(frames(table, texts, "request"), table["awaits"])


def _of(table: pa.Table, keys: Any) -> Any:
    import pyarrow.compute as pc

    return table.filter(pc.is_in(table["key"], value_set=keys))


def _without(keys: Any, others: Any) -> Any:
    """One array of those keys that are not among the others."""
    import pyarrow.compute as pc

    found = keys.filter(pc.invert(pc.is_in(keys, value_set=_array(others))))
    return _array(found)


def _array(found: Any) -> Any:
    import pyarrow as pa

    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _ranges(times: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of times that are near each other; they are sorted."""
    begin = end = None
    for one in times:
        if begin is None or end is None:
            begin = one
        elif one - end > NEAR_NS:
            yield begin, end
            begin = one
        end = one
    if begin is not None and end is not None:
        yield begin, end


def _name(row: Captured) -> Name:
    of = row.connection
    return ("", 0, row.exchange) if of is None else (of.capture, of.number, row.exchange)
