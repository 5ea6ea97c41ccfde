"""Consumers that skip records or read them again: out of range, without a committed offset (perhaps with a
new group id at each start), with jumps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.complete import complete
from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured
from klamm.pipeline.detectors.generated_names import shape

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

PARTITION = ("cluster", "client_id", "topic", "partition")
SENTENCES = (
    ("%d times out of range", "out_of_range"),
    ("%d times without a committed offset", "without"),
    ("%d times back, by %d records in all", "back", "again"),
    ("%d times ahead, by %d records in all", "ahead", "skipped"),
)
EVENT = (*PARTITION, "time", "capture", "connection", "exchange", "kind", "records", "group")
OWN = ("cluster", "shape", "topic", "partition")  # clients whose ids differ in a generated part are one


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """By partition first; the findings are by topic."""
    from pyspark.sql import functions as F

    events = _out_of_range(tables).unionAll(_without_offset(tables)).unionAll(_jumps(tables))

    def times(kind: str) -> Column:
        return F.count_if(F.col("kind") == kind).alias(kind)

    partitions = (
        events.withColumn("shape", shape(F.col("client_id")))
        .groupBy(*OWN)
        .agg(
            F.min("client_id").alias("client_id"),
            F.count_distinct("group").alias("groups"),
            F.min("group").alias("group"),
            F.count(F.lit(1)).alias("count"),
            *(times(kind) for kind in ("out_of_range", "without", "back", "ahead")),
            F.sum(F.when(F.col("kind") == "back", F.col("records"))).alias("again"),
            F.sum(F.when(F.col("kind") == "ahead", F.col("records"))).alias("skipped"),
            *measured(),
        )
        .withColumn("seconds", (F.unix_micros("last") - F.unix_micros("first")) / 1e6)
        .where(
            (F.col("out_of_range") >= thresholds["out_of_range"])
            | (F.col("count") >= thresholds["count"])
            & (F.col("seconds") <= thresholds["apart_s"] * F.col("count"))
        )
    )
    sums = ("count", "out_of_range", "without", "back", "again", "ahead", "skipped")
    rows = partitions.groupBy("cluster", "shape", "topic").agg(
        F.min("client_id").alias("client_id"),
        F.max("groups").alias("groups"),
        F.min("group").alias("group"),
        *(F.sum(F.coalesce(name, F.lit(0))).alias(name) for name in sums),
        F.count(F.lit(1)).alias("partitions"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.max_by("evidence", "count").alias("evidence"),
    )
    parts = [F.when(F.col(columns[0]) > 0, F.format_string(text, *columns)) for text, *columns in SENTENCES]
    anew = F.format_string("; it had %d group ids, as `%s`: a new group id at each start", "groups", "group")
    what = F.concat(
        F.concat_ws(", ", *parts),
        F.format_string(" on %d partition(s)", "partitions"),
        F.when(F.col("groups") >= thresholds["groups"], anew).otherwise(""),
    )
    return finding(rows, what, severity="high", subject=F.concat(F.lit("topic "), "topic"))


def _out_of_range(tables: Tables) -> DataFrame:
    from pyspark.sql import functions as F

    rows = tables.fetch.where(~F.col("is_replica") & (F.col("error") == "OFFSET_OUT_OF_RANGE"))
    return _events(rows, "out_of_range", F.lit(0))


def _without_offset(tables: Tables) -> DataFrame:
    """Of partitions that this client reads records of: on an empty one there is nothing to commit."""
    from pyspark.sql import functions as F

    read = tables.fetch.where(~F.col("is_replica") & (F.col("records") > 0)).select(*PARTITION).distinct()
    asked = (F.col("api") == "OffsetFetch") & (F.col("error") == "NONE") & (F.col("offset") < 0)
    rows = tables.offsets.where(asked).join(read, list(PARTITION), "left_semi")
    return _events(rows, "without", F.lit(0), "group")


def _jumps(tables: Tables) -> DataFrame:
    """Within a connection: a request for an offset before the one of the request before, or beyond the end of
    its answer. To go on at a committed offset is no jump.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    in_turn = Window.partitionBy("capture", "connection", "topic", "partition").orderBy("exchange")
    before = in_turn.rowsBetween(Window.unboundedPreceding, -1)
    good = F.col("error") == "NONE"
    asked = F.last(F.when(good, F.col("fetch_offset")), ignorenulls=True).over(before)
    end = F.when(good, F.coalesce("next_offset", "fetch_offset"))
    offset = F.col("fetch_offset")
    committed = (
        tables.offsets.where((F.col("api") == "OffsetFetch") & (F.col("offset") >= 0))
        .select(*PARTITION, F.col("offset").alias("fetch_offset"))
        .distinct()
    )
    jumps = (
        tables.fetch.where(~F.col("is_replica") & F.col("topic").isNotNull())
        .withColumns({"asked": asked, "expected": F.lag(end).over(in_turn)})
        .where(good & ((offset < F.col("asked")) | (offset > F.col("expected"))))
        .join(committed, [*PARTITION, "fetch_offset"], "left_anti")
        .withColumn("kind", F.when(offset < F.col("asked"), "back").otherwise("ahead"))
        .withColumn(
            "records",
            F.when(offset < F.col("asked"), F.col("asked") - offset).otherwise(offset - F.col("expected")),
        )
    )
    return _events(complete(jumps, tables), F.col("kind"), F.col("records"))


def _events(rows: DataFrame, kind: str | Column, records: Column, group: str | None = None) -> DataFrame:
    from pyspark.sql import functions as F

    columns = {
        "kind": F.lit(kind) if isinstance(kind, str) else kind,
        "records": records.cast("bigint"),
        "group": F.lit(None).cast("string") if group is None else F.col(group),
    }
    return rows.withColumns(columns).select(*EVENT)


DETECTOR = Detector(
    name="offset_resets",
    title="Skips records, or reads them again",
    severity="high",
    settings=(
        "group.id",
        "auto.offset.reset",
        "enable.auto.commit",
        "retention.ms",
        "offsets.retention.minutes",
    ),
    advice=(
        "Commit offsets and begin at them: keep one group.id over all starts, and subscribe once, instead of "
        "assigning or seeking in the loop. "
        "Offsets that are kept elsewhere are worth nothing when the topic is made anew. "
        "auto.offset.reset=none makes a lost offset an error, instead of records skipped (latest) or read "
        "again (earliest); retention.ms has to be longer than a consumer may be away."
    ),
    find=find,
    source="Kafka's documentation of auto.offset.reset; KIP-122 on how offsets are lost",
    thresholds={
        "out_of_range": Threshold(
            2, "answers OFFSET_OUT_OF_RANGE", "one may be a replica that is behind (KIP-392)"
        ),
        "count": Threshold(5, "resets of any kind on a partition", "rule of thumb: a start has one to three"),
        "groups": Threshold(3, "group ids of one client", "rule of thumb: a program reads with one or two"),
        "apart_s": Threshold(3600, "s between two on average", "rule of thumb: rarer ones are restarts"),
    },
)
