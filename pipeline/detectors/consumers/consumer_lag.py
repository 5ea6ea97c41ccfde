"""Consumers that fall behind: the offsets that a group commits, or that a client asks for where none are
committed, are ever further from what the brokers have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding
from klamm.pipeline.tables import lag

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The lag has to grow all the time, and not only to be there: a backlog that is worked off falls.

    A group is judged by its commits: clients that fetch ahead of the application ask for the end of a
    partition while nothing of it is done. Only where a client commits nothing, by the offset it asks for.
    """
    return _groups(tables, thresholds).unionAll(_readers(tables, thresholds))


def _groups(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """One finding for each group, about all the partitions on which it falls behind."""
    from pyspark.sql import functions as F

    silent_s = (F.unix_micros(F.max("time")) - F.unix_micros(F.max("row.time"))) / 1e6
    rows = (
        _growing(lag.samples(tables), lag.OF_GROUP, thresholds, silent_s)
        .groupBy("cluster", "group")
        .agg(
            *_together(),
            F.max_by("topic", "end.lag").alias("topic"),
            F.max_by("end.client_id", "end.lag").alias("client_id"),
            F.count_distinct("topic").alias("topics"),
            F.min("silent_s").alias("silent_s"),
        )
    )
    what = F.format_string(
        "commits %.0f records a second of %.0f that are produced: its lag grew from %d to %d records in "
        "%.0f s, on %d partition(s) of %d topic(s), most of it on %s; nothing was committed in the last "
        "%.0f s",
        *("read_s", "made_s", "before", "after", "seconds", "count", "topics", "topic", "silent_s"),
    )
    return finding(rows, what, subject=F.concat(F.lit("group "), "group"))


def _readers(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """One finding for each client and topic, without the partitions that the client commits."""
    from pyspark.sql import functions as F

    own = (*lag.PARTITION, "client_id")
    committed = lag.positions(tables).select(*own).distinct()
    asked = (
        tables.fetch.where(~F.col("is_replica") & (F.col("error") == "NONE"))
        .where((F.col("fetch_offset") >= 0) & (F.col("high_watermark") >= 0))
        .join(committed, list(own), "left_anti")
        .withColumns(
            {"at": F.col("fetch_offset"), "end": lag.readable(), "row": F.struct("time", *lag.EXCHANGE)}
        )
        .withColumn("lag", F.col("end") - F.col("at"))
    )
    rows = (
        _growing(asked, own, thresholds, F.lit(0.0))
        .groupBy("cluster", "client_id", "topic")
        .agg(*_together())
    )
    what = F.format_string(
        "reads %.0f records a second of %.0f that are produced: its lag grew from %d to %d records in "
        "%.0f s, on %d partition(s)",
        *("read_s", "made_s", "before", "after", "seconds", "count"),
    )
    return finding(rows, what, subject=F.concat(F.lit("topic "), "topic"))


def _growing(
    samples: DataFrame, own: tuple[str, ...], thresholds: Mapping[str, float], silent_s: Column
) -> DataFrame:
    """Of each partition whose lag grew all the time: its first and last sample, `begin` and `end`. A sample
    has `time`, `at`, `end`, `lag`, and the exchange `row` that tells `at`. `silent_s`: since the last commit;
    the lag of this time counts only beyond what passes between two commits.
    """
    from pyspark.sql import functions as F

    seconds_since_1970 = F.unix_micros("time") / 1e6
    point = F.struct("lag", "at", F.col("end").alias("there"), "client_id", "row")
    late_s = thresholds["behind_s"] + F.least("silent_s", F.lit(thresholds["commit_s"]))
    return (
        samples.groupBy(*own)
        .agg(
            F.count(F.lit(1)).alias("seen"),
            F.min_by(point, "time").alias("begin"),
            F.max_by(point, "time").alias("end"),
            F.max("lag").alias("most"),
            F.corr(seconds_since_1970, F.col("lag").cast("double")).alias("growth"),
            (F.max(seconds_since_1970) - F.min(seconds_since_1970)).alias("seconds"),
            F.min("time").alias("first"),
            F.max("time").alias("last"),
            silent_s.alias("silent_s"),
        )
        .withColumn("evidence", F.array_distinct(F.array("begin.row", "end.row")))
        .where((F.col("seen") >= thresholds["seen"]) & (F.col("seconds") >= thresholds["seconds"]))
        .withColumn("read_s", (F.col("end.at") - F.col("begin.at")) / F.col("seconds"))
        .withColumn("made_s", (F.col("end.there") - F.col("begin.there")) / F.col("seconds"))
        .where(F.col("growth") >= thresholds["steadiness"])
        .where(F.col("end.lag") >= thresholds["at_end"] * F.col("most"))
        .where(F.col("end.lag") - F.col("begin.lag") >= thresholds["records"])
        .where(F.col("end.lag") >= late_s * F.col("made_s"))
    )


def _together() -> list[Column]:
    """The sums of several partitions."""
    from pyspark.sql import functions as F

    return [
        F.count(F.lit(1)).alias("count"),
        F.sum("begin.lag").alias("before"),
        F.sum("end.lag").alias("after"),
        F.sum("read_s").alias("read_s"),
        F.sum("made_s").alias("made_s"),
        F.max("seconds").alias("seconds"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.max_by("evidence", "end.lag").alias("evidence"),
    ]


DETECTOR = Detector(
    name="consumer_lag",
    title="Falls behind",
    severity="medium",
    settings=("max.poll.records", "max.partition.fetch.bytes", "enable.auto.commit"),
    advice=(
        "Look at what is done with a record between poll and commit. Add members to the group, up to the "
        "number of partitions, or make the work on a record shorter: in parallel, or many records at once. "
        "Where nothing was committed for long, look for an error that the client swallows, and at "
        "enable.auto.commit. If max.partition.fetch.bytes (librdkafka: fetch.message.max.bytes) is small, "
        "each answer brings little."
    ),
    find=find,
    source="Kafka's documentation of monitoring consumers: records-lag",
    thresholds={
        "seconds": Threshold(10, "s from the first to the last sample", "rule of thumb: less is a start"),
        "seen": Threshold(8, "samples, one a second of a group", "rule of thumb: fewer make no trend"),
        "steadiness": Threshold(0.8, "correlation of lag and time", "rule of thumb: 1 is a straight line"),
        "at_end": Threshold(0.8, "of the largest lag", "rule of thumb: it is not being worked off"),
        "records": Threshold(
            1000, "records more than at the beginning", "twice the default of max.poll.records"
        ),
        "behind_s": Threshold(5, "s of production", "rule of thumb: a restart of a broker costs less"),
        "commit_s": Threshold(10, "s between two commits", "twice auto.commit.interval.ms"),
    },
)
