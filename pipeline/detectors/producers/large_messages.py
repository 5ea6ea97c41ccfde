"""Records near the size, or beyond the size, that brokers take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

REFUSED = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """By the bytes of a record in its batches, as they are compressed, and by refused requests."""
    from pyspark.sql import functions as F

    size = F.col("bytes") / F.greatest("records", F.lit(1))
    refused = F.coalesce(F.col("error").isin(*REFUSED), F.lit(False))
    rows = (
        tables.produce.where((size >= thresholds["record_bytes"]) | refused)
        .groupBy("cluster", "client_id", "topic")
        .agg(
            F.count("*").alias("count"),
            F.sum("records").alias("records"),
            F.avg(size).alias("mean"),
            F.max(size).alias("largest"),
            F.count_if(refused).alias("refused"),
            F.sort_array(F.collect_set(F.when(refused, F.col("error")))).alias("errors"),
            *measured(),
        )
        .where((F.col("count") >= thresholds["batches"]) | (F.col("refused") > 0))
    )
    refusals = F.format_string(
        "; %d batch(es) were refused with %s", "refused", F.array_join("errors", " and ")
    )
    what = F.format_string(
        "%d records of %.0f kB on average, the largest of %.0f kB%s",
        "records",
        F.col("mean") / 1e3,
        F.col("largest") / 1e3,
        F.when(F.col("refused") > 0, refusals).otherwise(""),
    )
    severity = F.when(F.col("refused") > 0, "high").otherwise("medium")
    return finding(rows, what, severity=severity, subject=F.concat(F.lit("topic "), "topic"))


DETECTOR = Detector(
    name="large_messages",
    title="Large messages",
    severity="high",
    settings=("max.message.bytes", "message.max.bytes", "max.request.size", "max.partition.fetch.bytes"),
    advice=(
        "Keep large objects elsewhere and send where they are, or send them in parts. If they have to be "
        "in Kafka: max.message.bytes of the topic, max.request.size of the producer (librdkafka: "
        "message.max.bytes) and max.partition.fetch.bytes of consumers belong together."
    ),
    find=find,
    source="Kafka's documentation of message.max.bytes: 1048588 by default, of a batch as it is compressed",
    thresholds={
        "record_bytes": Threshold(1 << 19, "bytes", "half of the default of message.max.bytes"),
        "batches": Threshold(
            5, "batches", "rule of thumb: more than an exception; one that is refused is enough"
        ),
    },
)
