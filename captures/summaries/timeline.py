"""A capture over time, from its columns: how many exchanges ended in each step, and how many bytes came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.captures.summaries.columns import Keys, Texts, code, frames, numbered, together

if TYPE_CHECKING:
    import pyarrow as pa

    from klamm.captures.storage.reading import Reading

# The columns of a segment that are read.
WANTED = (
    "time_ns", "kind", "capture", "connection", "side", "exchange", "size", "awaits", "lost", "text",
)  # fmt: skip
SIZE = 4  # bytes of the size field, which frames are kept without
US, S = 1_000, 1_000_000_000  # ns
DAY_S = 86_400
END_NS = 1 << 62  # after all times
STEPS_NS = (
    *(US * 10**power * each for power in range(6) for each in (1, 2, 5)),
    *(S * each for each in (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800)),
    *(S * each for each in (3600, 7200, 10_800, 21_600, 43_200, DAY_S, 2 * DAY_S, 7 * DAY_S)),
)


class Steps(NamedTuple):
    """Equal steps of time from `first_ns` on, a whole multiple of `step_ns`. Times are ns since 1970."""

    first_ns: int
    step_ns: int
    amount: int

    def place(self, time_ns: int) -> int | None:
        """The number of its step; None outside of all."""
        found = (time_ns - self.first_ns) // self.step_ns
        return found if 0 <= found < self.amount else None


def steps(first_ns: int, last_ns: int, most: int) -> Steps:
    """At most so many, of a round length, with both times in them."""
    for step_ns in (*STEPS_NS, *(28 * DAY_S * S << doubled for doubled in range(32))):
        begin = first_ns - first_ns % step_ns
        count = (last_ns - begin) // step_ns + 1
        if count <= most:
            break
    return Steps(begin, step_ns, count)


def exchanges_in(reading: Reading) -> int:
    """How many exchanges a capture has. Reads columns without bodies."""
    counted = Timeline(Steps(0, END_NS, 1))
    for some in together(reading.batches(WANTED)):
        counted.add(some)
    counted.end()
    return counted.exchanges[0]


class Timeline:
    """Counts the rows of a capture: batches with the columns WANTED, of each segment in their order.

    An exchange counts where it ends: at its answer, or at its request where it has none. Bytes count where
    the first byte of their frame came. What is outside of the steps counts in the sums only.
    """

    def __init__(self, of: Steps) -> None:
        self.of = of
        self.exchanges, self.bytes = [0] * of.amount, [0] * of.amount
        self.frames = self.rows = self.unanswered = 0
        self.lost: Counter[str] = Counter()  # frames, by the text of their rows
        self._keys = Keys()
        self._open: Any = None  # requests without their answers: a table of keys and places

    @property
    def connections(self) -> int:
        return len(self._keys.connections)

    def add(self, batches: Sequence[pa.RecordBatch]) -> None:
        """As many as columns.together gives."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table, texts = numbered(batches)
        self.rows += table.num_rows
        self._lost(table, texts)
        since = pc.subtract(table["time_ns"], self.of.first_ns)
        place = pc.if_else(pc.less(since, 0), -1, pc.divide(since, self.of.step_ns))
        table = table.append_column("place", place).filter(pc.is_valid(table["connection"]))
        asks, answers = (frames(table, texts, side) for side in ("request", "response"))
        self._bytes(table.filter(pc.or_(asks, answers)))
        table = table.append_column("key", self._keys.of(table, texts)).select(["key", "place", "awaits"])
        answered = table.filter(answers)
        self._count(answered)
        self._count(table.filter(pc.and_not(asks, table["awaits"])))
        asked = table.filter(pc.and_(asks, table["awaits"]))
        asked = asked if self._open is None else pa.concat_tables([self._open, asked])
        known = pc.is_in(asked["key"], value_set=answered["key"].combine_chunks())
        self._open = asked.filter(pc.invert(known))

    def end(self) -> None:
        """There are no more rows: requests that still wait have no answer."""
        if self._open is not None:
            self.unanswered = self._open.num_rows
            self._count(self._open)

    def _count(self, exchanges: pa.Table) -> None:
        import pyarrow.compute as pc

        for found in pc.value_counts(exchanges["place"]).to_pylist():
            if 0 <= found["values"] < self.of.amount:
                self.exchanges[found["values"]] += found["counts"]

    def _bytes(self, table: pa.Table) -> None:
        import pyarrow as pa

        self.frames += table.num_rows
        groups = pa.TableGroupBy(table, ["place"], use_threads=False)
        for row in groups.aggregate([("size", "sum"), ([], "count_all")]).to_pylist():
            if 0 <= row["place"] < self.of.amount:
                self.bytes[row["place"]] += row["size_sum"] + SIZE * row["count_all"]

    def _lost(self, table: pa.Table, texts: Texts) -> None:
        import pyarrow.compute as pc

        missing = table.filter(pc.equal(table["kind"], code(texts, "kind", "lost"))).select(["lost", "text"])
        for row in missing.to_pylist():
            self.lost[row["text"]] += row["lost"]
