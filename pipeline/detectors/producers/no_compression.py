"""A producer that sends much without compression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Batches that are large enough to shrink, and do not."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    plain = (F.col("codec") == "none").alias("plain")
    worth = (F.col("side") == "request") & (F.col("bytes") >= thresholds["batch_bytes"])
    of_client = Window.partitionBy("cluster", "client_id")
    rows = (
        tables.batches.where(worth)
        .groupBy("cluster", "client_id", plain)
        .agg(
            F.count("*").alias("count"),
            F.sum("records").alias("records"),
            F.sum("bytes").alias("bytes"),
            *measured(),
        )
        .withColumn("of", F.sum("bytes").over(of_client))
    )
    enough = (F.col("bytes") >= thresholds["bytes"]) & (F.col("bytes") >= thresholds["share"] * F.col("of"))
    what = F.format_string(
        "sent %.1f MB in %d batches of %.1f kB without compression, %.0f%% of the compressible bytes",
        F.col("bytes") / 1e6,
        "count",
        F.col("bytes") / F.col("count") / 1e3,
        F.col("bytes") / F.col("of") * 100,
    )
    return finding(rows.where(F.col("plain") & enough), what, severity="low")


DETECTOR = Detector(
    name="no_compression",
    title="No compression",
    severity="low",
    settings=("compression.type", "compression.codec"),
    advice=(
        "Set compression.type (librdkafka: compression.codec is the same) of the producer to lz4 or zstd: "
        "brokers keep, replicate and serve what the producer sends. What is compressed or encrypted "
        "already gains nothing: librdkafka then leaves batches as they are."
    ),
    find=find,
    source="Kafka's documentation of compression.type: its default is none",
    thresholds={
        "bytes": Threshold(1 << 20, "bytes", "rule of thumb: less is not worth a change"),
        "batch_bytes": Threshold(1024, "bytes of a batch", "rule of thumb: smaller ones hardly shrink"),
        "share": Threshold(
            0.5, "of its bytes", "rule of thumb: most of it, and not some batches that do not shrink"
        ),
    },
)
