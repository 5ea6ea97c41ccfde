"""A capture summed up from its columns, without its frames.

Memory is needed for connections, clients and unanswered requests, not for rows.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from klamm.captures.summaries.columns import Keys, Texts, frames, numbered, together
from klamm.captures.summaries.histogram import FEW, PER_OCTAVE, ZERO_AT, Histogram

if TYPE_CHECKING:
    import pyarrow as pa

# The columns of a segment that are read.
WANTED = (
    "time_ns", "kind", "capture", "connection", "side", "api_key", "api_version", "client_id", "exchange",
    "size", "fate", "awaits", "lost", "text",
)  # fmt: skip
TOLD_APART = ("kind", "side", "api_key", "api_version", "client_id", "fate")

Kind = tuple[int, int]  # API key and version


@dataclass(slots=True)
class Use:
    """Counts of frames. Sizes in bytes, without size fields."""

    requests: int = 0
    responses: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    largest_request: int = 0
    largest_response: int = 0

    def add(self, side: str, count: int, size_bytes: int, largest: int) -> None:
        if side == "request":
            self.requests += count
            self.request_bytes += size_bytes
            self.largest_request = max(self.largest_request, largest)
        else:
            self.responses += count
            self.response_bytes += size_bytes
            self.largest_response = max(self.largest_response, largest)


@dataclass(slots=True)
class Sums:
    """Sums over rows. `fates`: (side, fate) of frames that klamm did not just pass."""

    rows: int = 0
    first_ns: int = 0
    last_ns: int = 0
    apis: defaultdict[Kind, Use] = field(default_factory=lambda: defaultdict(Use))
    clients: defaultdict[str | None, Use] = field(default_factory=lambda: defaultdict(Use))
    latencies_ms: defaultdict[Kind, Histogram] = field(default_factory=lambda: defaultdict(Histogram))
    fates: Counter[tuple[str, str]] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)  # frames, by the text of their rows
    unanswered: int = 0
    without_request: Use = field(default_factory=Use)  # responses without an API
    connections: dict[tuple[str, int], int] = field(default_factory=dict)  # with a number of their own here

    @property
    def total(self) -> Use:
        """The sums over all APIs."""
        found = Use()
        for use in self.apis.values():
            found.add("request", use.requests, use.request_bytes, use.largest_request)
            found.add("response", use.responses, use.response_bytes, use.largest_response)
        return found


class Summing:
    """Takes batches of a capture's rows, with the columns WANTED: of each segment in their order."""

    def __init__(self) -> None:
        self.sums = Sums()
        self._keys = Keys()
        self._open: Any = None  # requests without their answers: a table of keys and times

    def add(self, batches: Iterable[pa.RecordBatch]) -> None:
        for some in together(batches):
            self._sum_up(some)

    def end(self) -> Sums:
        """The sums."""
        self.sums.unanswered = 0 if self._open is None else self._open.num_rows
        self.sums.connections = self._keys.connections
        return self.sums

    def _sum_up(self, batches: Sequence[pa.RecordBatch]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        table, texts = numbered(batches)
        sums = self.sums
        sums.rows += table.num_rows
        times = pc.min_max(table["time_ns"]).as_py()
        sums.first_ns = min(sums.first_ns or times["min"], times["min"])
        sums.last_ns = max(sums.last_ns, times["max"])
        groups = pa.TableGroupBy(table, list(TOLD_APART), use_threads=False)
        counted = groups.aggregate([("size", "sum"), ("size", "max"), ("lost", "sum"), ([], "count_all")])
        for group in counted.to_pylist():
            self._count(group, texts)
        self._lost(table, texts)
        self._latencies(table, texts)

    def _count(self, group: dict[str, Any], texts: Texts) -> None:
        kind, side, fate, client = (
            _text(texts, name, group) for name in ("kind", "side", "fate", "client_id")
        )
        sums, count = self.sums, group["count_all"]
        sums.kinds[kind or ""] += count
        if kind != "frame" or side is None:
            return
        amounts = side, count, group["size_sum"], group["size_max"]
        if side == "response" and group["api_key"] < 0:
            sums.without_request.add(*amounts)
            return
        sums.apis[group["api_key"], group["api_version"]].add(*amounts)
        sums.clients[client].add(*amounts)
        if fate != "passed":
            sums.fates[side, fate or ""] += count

    def _lost(self, table: pa.Table, texts: Texts) -> None:
        import pyarrow.compute as pc

        if "lost" in texts["kind"]:
            rows = table.filter(pc.equal(table["kind"], texts["kind"].index("lost"))).select(["lost", "text"])
            for row in rows.to_pylist():
                self.sums.lost[row["text"]] += row["lost"]

    def _latencies(self, table: pa.Table, texts: Texts) -> None:
        """Requests, those that earlier tables left open too, and the responses to them."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = table.filter(pc.is_valid(table["connection"]))
        table = table.append_column("key", self._keys.of(table, texts))
        asking = pc.and_(frames(table, texts, "request"), table["awaits"])
        answering = frames(table, texts, "response")
        asked = table.filter(asking).select(["key", "time_ns"])
        asked = asked if self._open is None else pa.concat_tables([self._open, asked])
        answered = table.filter(answering).select(["key", "time_ns", "api_key", "api_version"])
        places = pc.index_in(answered["key"], value_set=asked["key"].combine_chunks())
        began = asked["time_ns"].combine_chunks().take(places.combine_chunks())
        took = pc.divide(pc.subtract(answered["time_ns"], began).cast(pa.float64()), 1e6)
        self._histograms(answered.append_column("ms", took).filter(pc.is_valid(took)))
        self._open = asked.filter(
            pc.invert(pc.is_in(asked["key"], value_set=answered["key"].combine_chunks()))
        )

    def _histograms(self, answered: pa.Table) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not answered.num_rows:
            return
        places = pc.add(pc.multiply(pc.log2(answered["ms"]), float(PER_OCTAVE)), float(ZERO_AT))
        places = pc.if_else(pc.greater(answered["ms"], 0.0), pc.floor(places), 0.0).cast(pa.int32())
        groups = pa.TableGroupBy(
            answered.append_column("bucket", places), ["api_key", "api_version", "bucket"], use_threads=False
        )
        found = groups.aggregate([("ms", "sum"), ("ms", "min"), ("ms", "max"), ([], "count_all")])
        for row in found.to_pylist():
            histogram = self.sums.latencies_ms[row["api_key"], row["api_version"]]
            histogram.counts[row["bucket"]] += row["count_all"]
            histogram.total += row["ms_sum"]
            histogram.least = min(histogram.least, row["ms_min"])
            histogram.most = max(histogram.most, row["ms_max"])
        for (key, version), histogram in self.sums.latencies_ms.items():
            if len(histogram) <= FEW:
                is_kind = pc.and_(
                    pc.equal(answered["api_key"], key), pc.equal(answered["api_version"], version)
                )
                histogram.few += answered["ms"].filter(is_kind).to_pylist()


def _text(texts: Texts, column: str, group: dict[str, Any]) -> str | None:
    code = group[column]
    return None if code is None else texts[column][code]
