"""Tables as Parquet, written again and again with what is new in the captures.

    write(spark, ["captures/"], "tables/")          # and an hour later the same again
    stored(spark, "tables/", "produce").where("day = '2026-11-21'")

Each table is a folder: `exchanges/run=3/api=Produce/day=2026-11-21/*.parquet`; without `api=` where a
table has no such column. Days are of UTC. The columns are those of schemas.py in all runs.

**What is new.** `ledger/` says for each segment how many of its batches were read, as the offsets of a
stream of captures do, so a run reads the batches that came since, of growing segments too. What a run
needs of earlier ones is in the ledger as well: names of topic ids, the software of connections, the
requests that wait for their answer.

**An exchange whose halves lie in two runs** is one row, in the run that has the answer. A request that is
due an answer waits in the ledger; the next run reads the batches with such requests once more, and only
those requests of them. It is written as unanswered when its connection is closed, or `wait_s` seconds
after it was sent. An answer that comes later than that, or a second one, is left out. If retention took
the segment with the request meanwhile, the answer is a row of its own, as where the request came before
the capture.

**Exactly once.** A run writes its own folders, `run=N` of each table, and then one file into the ledger:
that is when it has happened. Killed before, it leaves folders that `stored` does not look at, and that the
next run writes anew: it has the same number. So a reader without `stored` may see rows that are still
being written, and those of a killed run until the next. One writer at a time.

`connections` is of whole connections, and not written: make it with Tables.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.errors import AnalysisException
from pyspark.sql import Row
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from klamm.pipeline.reading.filters import Filters
from klamm.pipeline.reading.parts import Part, opening
from klamm.pipeline.reading.source import Stream
from klamm.pipeline.schemas import TABLES
from klamm.pipeline.tables import Tables
from klamm.pipeline.tables.cluster import CONNECTION, software, topic_names
from klamm.pipeline.tables.reading import KEY, TYPES, Names, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WRITTEN = tuple(name for name in TABLES if name not in ("connections", "findings"))
WAIT_S = 900.0  # longer than a consumer's max.poll.interval.ms, for which a JoinGroup may wait
IDLE_S = 86_400.0  # after which a connection that was not closed is forgotten
REQUEST, RESPONSE = "kind = 'frame' AND side = 'request'", "kind = 'frame' AND side = 'response'"
OPEN = "capture string, connection bigint, exchange bigint, time_ns bigint"

Open = tuple[str, int, int, int]


class Connected(NamedTuple):
    """The state of a connection that may go on. `next`: the number of its next request; `heard_us`: the time
    of its last answer; `last_us`: the time of its last row.
    """

    capture: str
    connection: int
    next: int
    heard_us: int | None
    last_us: int
    software: str | None


class Ledger(NamedTuple):
    """The rows written so far: up to which run, and the connections that go on. `open`: capture, connection,
    exchange and time_ns of pending requests.
    """

    run: int = 0
    tables: Sequence[str] = ()
    bodies: str = ""
    segments: Mapping[str, Mapping[str, Any]] = {}
    open: Sequence[Open] = ()
    connections: Sequence[Connected] = ()
    names: Mapping[str, str] = {}


def write(
    spark: SparkSession,
    capture_paths: str | Sequence[str],
    directory: str | Path,
    tables: Sequence[str] = WRITTEN,
    *,
    bodies: str = "variant",
    wait_s: float = WAIT_S,
    on_table: Callable[[int, int], None] = lambda done, of: None,
) -> dict[str, int]:
    """Writes the new rows of the captures; gives their number for each table. `directory` is any that Spark
    can write to. `bodies`: "variant", or "json" for readers without such a type. `on_table` is told how many
    tables are written, and of how many. Raises ValueError for tables that are not written, for other tables
    or bodies than a directory has, and for captures that are not in a folder.
    """
    paths = [capture_paths] if isinstance(capture_paths, str) else [str(path) for path in capture_paths]
    before = _ledger(spark, directory)
    _checked(before, tables, bodies, directory)
    for path in paths:
        if "://" in path or not Path(path).exists():
            raise ValueError(
                f"{path}: no folder that is seen here and on the executors; captures are read there"
            )
    stream = Stream(paths, StructType(), None)
    segments = stream.latestOffset(dict(before.segments))
    new = [one.part for one in stream.partitions(dict(before.segments), segments)]  # type: ignore[attr-defined]
    horizon_ns = int((time.time() - wait_s) * 1e9)
    if not new and all(time_ns >= horizon_ns for *_, time_ns in before.open):
        return dict.fromkeys(tables, 0)
    source = _Since(spark, new, before)
    after = _looked(source, before, horizon_ns)._replace(segments=segments, tables=tables, bodies=bodies)
    source.left = source.keys(after.open)
    made, run, counts = _Made(spark, source, after.names), before.run + 1, dict[str, int]()
    for name in tables:
        on_table(len(counts), len(tables))
        counts[name] = _put(made.rows(name, before), name, f"{directory}/{name}/run={run}", bodies)
    _commit(spark, directory, after._replace(run=run))
    return counts


def stored(spark: SparkSession, directory: str | Path, table: str) -> DataFrame:
    """The runs of a table that are whole: its columns, and `day`. Raises ValueError if it is not written."""
    ledger = _ledger(spark, directory)
    if table not in ledger.tables:
        raise ValueError(f"{directory} has no table {table}; known are {', '.join(ledger.tables) or 'none'}")
    schema = _ddl(table, ledger.bodies)
    rows = spark.read.schema(f"{schema}, day date, run int").parquet(f"{directory}/{table}")
    return rows.where(F.col("run") <= ledger.run).select(*(one.name for one in TABLES[table].columns), "day")


def _ddl(table: str, bodies: str) -> str:
    found = TABLES[table].ddl
    return found.replace(" variant", " string") if bodies == "json" else found


def _checked(before: Ledger, tables: Sequence[str], bodies: str, directory: str | Path) -> None:
    for name in tables:
        if name not in WRITTEN:
            raise ValueError(f"the table {name} is not written; known are {', '.join(WRITTEN)}")
    if bodies not in ("variant", "json"):
        raise ValueError(f"bodies={bodies!r}: must be 'variant' or 'json'")
    if before.run and (set(before.tables), before.bodies) != (set(tables), bodies):
        has = f"{', '.join(before.tables)}, with bodies as {before.bodies}"
        raise ValueError(
            f"{directory} is written with {has}: ask for the same, or write into another directory"
        )


def _ledger(spark: SparkSession, directory: str | Path) -> Ledger:
    try:
        last = spark.read.text(f"{directory}/ledger").orderBy(F.desc("run")).first()
    except AnalysisException as wrong:
        if not str(wrong.getCondition()).startswith(("PATH_NOT_FOUND", "UNRESOLVED_COLUMN")):
            raise
        last = None
    if last is None:
        return Ledger()
    ledger = json.loads(last["value"])
    ledger["connections"] = [Connected(*one) for one in ledger["connections"]]
    return Ledger(**ledger)


def _commit(spark: SparkSession, directory: str | Path, ledger: Ledger) -> None:
    """Writes one file, whole or not at all."""
    rows = spark.createDataFrame([(json.dumps(ledger._asdict()),)], "value string").coalesce(1)
    rows.write.mode("overwrite").text(f"{directory}/ledger/run={ledger.run}")


def _put(rows: DataFrame, table: str, path: str, bodies: str) -> int:
    """One or a few files for each API and day."""
    by = ["api", "day"] if "api" in rows.columns else ["day"]
    if bodies == "json":
        as_text = {one.name: F.to_json(one.name) for one in TABLES[table].columns if one.type == "variant"}
        rows = rows.withColumns(as_text)
    day = F.expr("date_from_unix_date(CAST(unix_micros(time) div 86400000000 AS INT))")
    rows.withColumn("day", day).hint("rebalance", *by).write.mode("overwrite").partitionBy(*by).parquet(path)
    return rows.sparkSession.read.schema("day date").parquet(path).count()


class _Since:
    """Frames that are written in this run: those that came since, without requests that wait, and the
    requests for which they bring the answer. What Tables takes for a Source.
    """

    def __init__(self, spark: SparkSession, new: list[Part], before: Ledger) -> None:
        self.spark, self._before = spark, before
        self._any = bool(new)
        self.new, self.old = Source(spark, [], new), Source(spark, [], _with_requests(before))
        self.left: DataFrame | None = None

    def keys(self, requests: Sequence[Open]) -> DataFrame:
        return F.broadcast(self.spark.createDataFrame(list(requests), OPEN).select(*KEY))

    def every(self, *columns: str) -> DataFrame:
        """The frames that came since, pending or not."""
        rows = self.new.frames(*columns)
        return rows if self._any else rows.limit(0)

    def frames(self, *columns: str, filters: Filters = ()) -> DataFrame:
        asked = tuple(dict.fromkeys((*columns, *KEY, "side")))
        return self._chosen(lambda source: source.frames(*asked, filters=filters)).select(*columns)

    def bodies(self, api: str | Sequence[str], side: Any, content: bool = False, body: str = "") -> DataFrame:
        return self._chosen(
            lambda source: source.bodies(api, side, content, body).withColumn("side", F.lit(side))
        ).drop("side")

    def exchanges(
        self, columns: Sequence[str], of_each: Sequence[str], filters: Filters = (), names: Names = None
    ) -> tuple[DataFrame, DataFrame]:
        whole, _ = self.new.exchanges(columns, of_each, filters, names)
        return whole, self._chosen(lambda source: source.exchanges(columns, of_each, filters, names)[1])

    def _chosen(self, read: Callable[[Source], DataFrame]) -> DataFrame:
        rows, before = read(self.new), self._before
        if before.connections:
            rows = self._without_late(rows)
        if before.open:
            rows = rows.unionByName(read(self.old).join(self.keys(before.open), KEY, "left_semi"))
        return rows if self.left is None else rows.join(self.left, KEY, "left_anti")

    def _without_late(self, rows: DataFrame) -> DataFrame:
        """Answers to requests of earlier runs count where these wait for them."""
        known = [(one.capture, one.connection, one.next) for one in self._before.connections]
        nexts = F.broadcast(
            self.spark.createDataFrame(known, "capture string, connection bigint, next bigint")
        )
        waits = self.keys(self._before.open).withColumn("waits", F.lit(True))
        met = rows.join(nexts, CONNECTION, "left").join(waits, KEY, "left")
        is_late = (
            (F.col("side") == "response") & (F.col("exchange") < F.col("next")) & F.col("waits").isNull()
        )
        return met.where(~F.coalesce(is_late, F.lit(False))).drop("next", "waits")


def _with_requests(before: Ledger) -> list[Part]:
    """The batches in which requests stand that wait for their answer."""
    times = [time_ns for *_, time_ns in before.open]
    found = []
    for path, there in before.segments.items() if times else ():
        opened, _ = opening(Path(path))
        for place, span in enumerate(opened.spans[: there["batches"]] if opened else ()):
            if any(span.first_ns <= time_ns <= span.last_ns for time_ns in times):
                found.append(Part(path, place, place + 1))
    return found


def _looked(source: _Since, before: Ledger, horizon_ns: int) -> Ledger:
    """The state for the next run. Headers are read, and the few bodies that have names."""
    heads = (
        source.frames(*KEY, "time", "time_ns", "kind", "side", "awaits").where("connection >= 0").persist()
    )
    seen = heads.groupBy(*CONNECTION).agg(
        F.max(F.when(F.expr(REQUEST), F.col("exchange") + 1)).alias("next"),
        F.max(F.when(F.expr(RESPONSE), F.unix_micros("time"))).alias("heard_us"),
        F.max(F.unix_micros("time")).alias("last_us"),
        F.bool_or(F.col("kind") == "closed").alias("closed"),
    )
    connected = seen.collect()
    closed = {(row["capture"], row["connection"]) for row in connected if row["closed"]}
    waits = [one for one in _waiting(source, heads, before) if one[:2] not in closed and one[3] >= horizon_ns]
    heads.unpersist()
    counts = {
        (row["capture"], row["connection"]): row["software"]
        for row in software(source).collect()  # type: ignore[arg-type]
    }
    names = topic_names(source).first()  # type: ignore[arg-type]
    connections = {one[:2]: one for one in before.connections}
    for row in connected:
        key = row["capture"], row["connection"]
        connections[key] = _joined(connections.get(key), row, counts.get(key))
    latest_us = max((one.last_us for one in connections.values()), default=0)
    return Ledger(
        open=waits,
        connections=[
            one
            for key, one in connections.items()
            if key not in closed and one.last_us >= latest_us - IDLE_S * 1e6
        ],
        names={**before.names, **((names and names["names"]) or {})},
    )


def _waiting(source: _Since, heads: DataFrame, before: Ledger) -> list[Open]:
    """Requests without the answer that is due; also those whose segment is gone."""
    awaited = heads.where(REQUEST).where("awaits").join(heads.where(RESPONSE), KEY, "left_anti")
    found = [tuple(row) for row in awaited.select(*KEY, "time_ns").collect()]
    if before.open:
        met = heads.join(source.keys(before.open), KEY, "left_semi").select(*KEY).collect()
        there = {tuple(row) for row in met}
        found += [tuple(one) for one in before.open if tuple(one[:3]) not in there]
    return found


def _joined(was: Connected | None, row: Row, software: str | None) -> Connected:
    """A connection before this run and in it."""
    here = Connected(
        row["capture"], row["connection"], row["next"] or 0, row["heard_us"], row["last_us"], software
    )
    if was is None:
        return here
    heard_us = max((one.heard_us for one in (was, here) if one.heard_us is not None), default=None)
    return here._replace(
        next=max(was.next, here.next),
        heard_us=heard_us,
        last_us=max(was.last_us, here.last_us),
        software=software or was.software,
    )


class _Made(Tables):
    """Tables of the frames of a run."""

    def __init__(self, spark: SparkSession, source: _Since, names: Mapping[str, str]) -> None:
        self.spark, self._bodies, self._persist = spark, True, False
        self._since = self._source = source  # type: ignore[assignment]
        self.names = names
        self.topic_names = spark.createDataFrame([(dict(names),)], "names map<string, string>")

    def rows(self, name: str, before: Ledger) -> DataFrame:
        if name == "frames":
            return self._since.every(*TYPES)
        rows: DataFrame = getattr(self, name)
        return _continued(rows, before) if name == "exchanges" else rows


def _continued(rows: DataFrame, before: Ledger) -> DataFrame:
    """The rows with the facts about their exchanges from earlier frames of the connections."""
    known = [(one.capture, one.connection, one.heard_us, one.software) for one in before.connections]
    schema = "capture string, connection bigint, heard_us bigint, known string"
    earlier = F.broadcast(rows.sparkSession.createDataFrame(known, schema))
    turn_ms = F.greatest("turn_ms", F.expr("least((heard_us - unix_micros(time)) / 1000.0D, latency_ms)"))
    goes_on = F.col("turn_ms").isNotNull() & F.col("heard_us").isNotNull()
    return (
        rows.join(earlier, CONNECTION, "left")
        .withColumn("software", F.coalesce("software", "known"))
        .withColumn("turn_ms", F.when(goes_on, turn_ms).otherwise(F.col("turn_ms")))
        .select(*rows.columns)
    )
