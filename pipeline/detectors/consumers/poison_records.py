"""Consumers that begin at the same offset again and again, read what is there, and commit none of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

WHERE = ("cluster", "client_id", "topic", "partition", "offset")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The offset that a client is told when it asks where to begin, each time on another connection, and from
    which it gets records, on as many. Where nothing has come since the last commit, it gets none.
    """
    from pyspark.sql import functions as F

    begun = (
        tables.offsets.where((F.col("api") == "OffsetFetch") & (F.col("error") == "NONE"))
        .where(F.col("offset") >= 0)
        .groupBy(*WHERE, "group")
        .agg(F.count_distinct("capture", "connection").alias("count"), *measured())
        .where(F.col("count") >= thresholds["starts"])
    )
    read = (
        tables.fetch.where(~F.col("is_replica") & (F.col("records") > 0))
        .withColumnRenamed("fetch_offset", "offset")
        .groupBy(*WHERE)
        .agg(F.count_distinct("capture", "connection").alias("reads"))
        .where(F.col("reads") >= thresholds["starts"])
    )
    rows = begun.join(read, list(WHERE), "left_semi")
    what = F.format_string(
        "began %d times at offset %d of %s-%d within %.0f s and got records, but committed none of them",
        "count",
        "offset",
        "topic",
        "partition",
        (F.unix_micros("last") - F.unix_micros("first")) / 1e6,
    )
    return finding(rows, what, severity="high", subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="poison_records",
    title="Fails at the same record again and again",
    severity="high",
    settings=("enable.auto.commit", "max.poll.interval.ms", "errors.deadletterqueue.topic.name"),
    advice=(
        "Look at the record at this offset (klamm show, or kafka-console-consumer.sh --offset): the consumer "
        "ends or is sent away when it works on it. Let it catch the error, write the record to a topic of "
        "its own (Kafka Connect: errors.deadletterqueue.topic.name; Kafka Streams: "
        "deserialization.exception.handler) and go on. Commit more often than once for all that was read."
    ),
    find=find,
    source="KIP-298: error handling in Connect; KIP-161: deserialization exception handlers in Streams",
    thresholds={
        "starts": Threshold(5, "starts at one offset", "rule of thumb: a deployment makes two or three"),
    },
)
