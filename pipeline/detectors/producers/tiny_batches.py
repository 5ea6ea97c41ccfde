"""A producer that sends a few small records at a time, many times a second, where one batch would do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Seconds in which one connection sends many batches to one partition, and all are small."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    second = F.date_trunc("second", "time").alias("second")
    produced = tables.batches.where(F.col("side") == "request")
    seconds = produced.groupBy(
        "cluster", "client_id", "capture", "connection", "topic", "partition", second
    ).agg(
        F.count("*").alias("batches"),
        F.sum("records").alias("records"),
        F.sum("bytes").alias("bytes"),
        F.min(F.struct("time", "exchange")).alias("one"),
    )
    of_client = Window.partitionBy("cluster", "client_id")
    tiny = (
        seconds.withColumn("of", F.sum("batches").over(of_client))
        .where(F.col("batches") >= thresholds["rate"])
        .where(F.col("records") < thresholds["records"] * F.col("batches"))
        .where(F.col("bytes") < thresholds["bytes"] * F.col("batches"))
        .select("*", "one.*")
        .groupBy("cluster", "client_id")
        .agg(
            F.sum("batches").alias("count"),
            F.max("of").alias("of"),
            F.sum("records").alias("records"),
            F.sum("bytes").alias("bytes"),
            F.count_distinct("second").alias("seconds"),
            *measured(),
        )
    )
    enough = (F.col("count") >= thresholds["batches"]) & (F.col("count") >= thresholds["share"] * F.col("of"))
    what = F.format_string(
        "%d batches in %d s had %.1f records and %.0f bytes on average; %.0f or more a second to a partition",
        "count",
        "seconds",
        F.col("records") / F.col("count"),
        F.col("bytes") / F.col("count"),
        F.lit(float(thresholds["rate"])),
    )
    return finding(tiny.where(enough), what)


DETECTOR = Detector(
    name="tiny_batches",
    title="Tiny batches",
    severity="medium",
    settings=("linger.ms", "batch.size", "batch.num.messages"),
    advice=(
        "Let the producer wait for more records: linger.ms of 20 to 100 (librdkafka: "
        "queue.buffering.max.ms is the same), and batch.size at its 16 kB or above (librdkafka: "
        "batch.num.messages too). Do not flush after each record."
    ),
    find=find,
    source="KIP-1030 (linger.ms became 5); Kafka's documentation of batch.size and linger.ms",
    thresholds={
        "batches": Threshold(100, "batches", "rule of thumb: more than a start or a moment of quiet gives"),
        "rate": Threshold(
            20, "batches/s to a partition", "rule of thumb: so many that 50 ms would bring two together"
        ),
        "share": Threshold(0.5, "of its batches", "rule of thumb: more than a few bursts"),
        "records": Threshold(10, "records on average, below", "rule of thumb: a tenth of a small batch"),
        "bytes": Threshold(1024, "bytes on average, below", "a sixteenth of the default of batch.size"),
    },
)
