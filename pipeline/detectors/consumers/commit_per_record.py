"""Consumers that commit each record, and wait for the coordinator each time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """A commit is hasty that comes soon after the one before, and tells of hardly a record."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_partition = Window.partitionBy("cluster", "group", "topic", "partition").orderBy("time", "exchange")
    of_connection = Window.partitionBy("capture", "connection", "group").orderBy("exchange")
    commits = (
        tables.commits.where((F.col("api") == "OffsetCommit") & (F.col("error") == "NONE"))
        .withColumn("records", F.col("offset") - F.lag("offset").over(of_partition))
        .groupBy("cluster", "client_id", "group", "capture", "connection", "exchange")
        .agg(F.min("time").alias("time"), F.sum("records").alias("records"))
        .withColumn("micros", F.unix_micros("time"))
        .withColumn("gap_ms", (F.col("micros") - F.lag("micros").over(of_connection)) / 1000)
    )
    hasty = (F.col("gap_ms") < thresholds["gap_ms"]) & (F.col("records") <= thresholds["records"])
    rows = (
        commits.groupBy("cluster", "client_id", "group")
        .agg(
            F.count_if(hasty).alias("count"),
            F.count(F.lit(1)).alias("commits"),
            F.sum(F.greatest("records", F.lit(0))).alias("records"),
            ((F.max("micros") - F.min("micros")) / 1e6).alias("seconds"),
            *measured(),
        )
        .where(
            F.col("count") >= F.greatest(F.lit(thresholds["count"]), thresholds["share"] * F.col("commits"))
        )
    )
    sentence = "%d commits for %d records in %.0f s"
    what = F.format_string(sentence, "commits", "records", "seconds")
    return finding(rows, what, subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="commit_per_record",
    title="Commits each record",
    severity="medium",
    settings=("enable.auto.commit", "auto.commit.interval.ms"),
    advice=(
        "Commit once for all records of a poll, or once in some seconds: commitAsync() meanwhile, "
        "commitSync() before partitions are given up. enable.auto.commit with auto.commit.interval.ms does "
        "so by itself."
    ),
    find=find,
    source="Kafka's documentation of KafkaConsumer: Manual Offset Control",
    thresholds={
        "gap_ms": Threshold(1000, "ms", "a fifth of auto.commit.interval.ms, which is 5000"),
        "records": Threshold(1, "records", "1 record, as in the detector's name; 0 is a commit without news"),
        "count": Threshold(30, "hasty commits", "rule of thumb: less is a test or a start"),
        "share": Threshold(0.5, "of all commits", "rule of thumb: it is the habit, not an exception"),
    },
)
