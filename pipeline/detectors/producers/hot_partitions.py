"""A partition that gets much more than its part, while those beside it have little to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Hot for the topic, and by this client: many that keep to one partition each may be even together."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    topic = ("cluster", "topic")
    by_client = Window.partitionBy(*topic, "client_id")
    load = (
        tables.produce.where(F.col("batches") > 0)
        .groupBy(*topic, "partition", "client_id")
        .agg(
            F.sum("bytes").alias("bytes"),
            F.sum("records").alias("count"),
            F.sum("batches").alias("batches"),
            *measured(),
        )
        .withColumns(
            {
                "of_client": F.sum("bytes").over(by_client),
                "records": F.sum("count").over(by_client),
                "all_batches": F.sum("batches").over(by_client),
                "of_partition": F.sum("bytes").over(Window.partitionBy(*topic, "partition")),
                "of_topic": F.sum("bytes").over(Window.partitionBy(*topic)),
            }
        )
        .join(F.broadcast(partition_counts(tables)), [*topic], "left")
    )
    fair, factor = 1 / F.col("partitions"), thresholds["factor"]
    hot = (
        (F.col("partitions") >= thresholds["partitions"])
        & (F.col("all_batches") >= thresholds["batches"] * F.col("partitions"))
        & (F.col("of_client") >= thresholds["bytes"] * F.col("partitions"))
        & (F.col("bytes") / F.col("of_client") >= factor * fair)
        & (F.col("of_partition") / F.col("of_topic") >= factor * fair)
    )
    what = F.format_string(
        "%.0f%% of its %.0f kB, %d of its %d records, go to one partition of %d, where %.0f%% would be even",
        F.col("bytes") / F.col("of_client") * 100,
        F.col("of_client") / 1e3,
        "count",
        "records",
        "partitions",
        fair * 100,
    )
    subject = F.format_string("partition %s-%d", "topic", "partition")
    return finding(load.where(hot), what, subject=subject)


def partition_counts(tables: Tables) -> DataFrame:
    """How many partitions each topic has, as Metadata tells."""
    from pyspark.sql import functions as F

    known = tables.metadata.where(F.col("topic").isNotNull() & F.col("partition").isNotNull())
    return known.groupBy("cluster", "topic").agg((F.max("partition") + 1).alias("partitions"))


DETECTOR = Detector(
    name="hot_partitions",
    title="Hot partitions",
    severity="medium",
    settings=("partitioner.class", "partitioner", "partitioner.ignore.keys"),
    advice=(
        "Choose a key with many values that come equally often, or none where order does not matter. If a "
        "partitioner of your own is set (partitioner.class; librdkafka: partitioner), look whether it uses "
        "all partitions."
    ),
    find=find,
    source="KIP-480 and KIP-794: records without key are spread evenly; with key, by the hash of the key",
    thresholds={
        "factor": Threshold(
            2.5, "times an even part", "rule of thumb: more than chance does with so many batches"
        ),
        "batches": Threshold(
            10,
            "batches for each partition",
            "of evenly spread ones, hardly any of 1000 has 2.5 times as many",
        ),
        "bytes": Threshold(
            10 * 16_384,
            "bytes for each partition",
            "ten times batch.size: without keys, clients change the partition after so much (KIP-794)",
        ),
        "partitions": Threshold(3, "partitions", "with two, none can have 2.5 times its part"),
    },
)
