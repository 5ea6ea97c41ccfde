"""Consumers that fall behind: what they ask for is further and further from what the brokers have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The lag of a partition where a consumer asks for it: the high watermark less the offset it asks for. It
    has to grow all the time, and not only to be there: a backlog that is worked off falls.
    """
    from pyspark.sql import functions as F

    seconds_since_1970 = F.unix_micros("time") / 1e6
    asked = (
        tables.fetch.where(~F.col("is_replica") & (F.col("error") == "NONE"))
        .where((F.col("fetch_offset") >= 0) & (F.col("high_watermark") >= 0))
        .withColumn("lag", F.col("high_watermark") - F.col("fetch_offset"))
    )
    at = F.struct("lag", "fetch_offset", "high_watermark")
    partitions = (
        asked.groupBy("cluster", "client_id", "topic", "partition")
        .agg(
            F.count(F.lit(1)).alias("seen"),
            F.min_by(at, "time").alias("begin"),
            F.max_by(at, "time").alias("end"),
            F.max("lag").alias("most"),
            F.corr(seconds_since_1970, F.col("lag").cast("double")).alias("growth"),
            (F.max(seconds_since_1970) - F.min(seconds_since_1970)).alias("seconds"),
            *measured(),
        )
        .where((F.col("seen") >= thresholds["seen"]) & (F.col("seconds") >= thresholds["seconds"]))
        .withColumn("read_s", (F.col("end.fetch_offset") - F.col("begin.fetch_offset")) / F.col("seconds"))
        .withColumn(
            "made_s", (F.col("end.high_watermark") - F.col("begin.high_watermark")) / F.col("seconds")
        )
        .where(F.col("growth") >= thresholds["steadiness"])
        .where(F.col("end.lag") >= thresholds["at_end"] * F.col("most"))
        .where(F.col("end.lag") - F.col("begin.lag") >= thresholds["records"])
        .where(F.col("end.lag") >= thresholds["behind_s"] * F.col("made_s"))
    )
    rows = partitions.groupBy("cluster", "client_id", "topic").agg(
        F.count(F.lit(1)).alias("count"),
        F.sum("begin.lag").alias("before"),
        F.sum("end.lag").alias("after"),
        F.sum("read_s").alias("read_s"),
        F.sum("made_s").alias("made_s"),
        F.max("seconds").alias("seconds"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.max_by("evidence", "end.lag").alias("evidence"),
    )
    told = "reads %.0f records a second of %.0f that are produced: its lag grew from %d to %d records "
    told += "in %.0f s, on %d partition(s)"
    what = F.format_string(told, "read_s", "made_s", "before", "after", "seconds", "count")
    return finding(rows, what, subject=F.concat(F.lit("topic "), "topic"))


DETECTOR = Detector(
    name="consumer_lag",
    title="Falls behind",
    severity="medium",
    settings=("max.poll.records", "max.partition.fetch.bytes", "fetch.max.bytes"),
    advice=(
        "Add members to the group, up to the number of partitions, or make the work on a record shorter: in "
        "parallel, or many records at once. If max.partition.fetch.bytes (librdkafka: "
        "fetch.message.max.bytes) is small, each answer brings little."
    ),
    find=find,
    source="Kafka's documentation of monitoring consumers: records-lag",
    thresholds={
        "seconds": Threshold(10, "s from the first to the last request", "rule of thumb: less is a start"),
        "seen": Threshold(8, "requests", "rule of thumb: fewer make no trend"),
        "steadiness": Threshold(0.8, "correlation of lag and time", "rule of thumb: 1 is a straight line"),
        "at_end": Threshold(0.8, "of the largest lag", "rule of thumb: it is not being worked off"),
        "records": Threshold(
            1000, "records more than at the beginning", "twice the default of max.poll.records"
        ),
        "behind_s": Threshold(5, "s of production", "rule of thumb: a restart of a broker costs less"),
    },
)
