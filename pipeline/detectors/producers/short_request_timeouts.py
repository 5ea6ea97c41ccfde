"""Producers that give the brokers little time, and send again what was only slow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Clients put their request timeout into each Produce: so long the leader may wait for its followers."""
    from pyspark.sql import functions as F

    short = (F.col("timeout_ms") < thresholds["timeout_ms"]) & (F.col("acks") != 0)
    rows = (
        tables.produce.where(short)
        .groupBy("cluster", "client_id")
        .agg(F.count("*").alias("count"), F.min("timeout_ms").alias("timeout_ms"), *measured())
        .where(F.col("count") >= thresholds["batches"])
    )
    what = F.format_string(
        "sent %d batches that are to be answered within %d ms: a broker that restarts takes longer",
        "count",
        "timeout_ms",
    )
    return finding(rows, what)


DETECTOR = Detector(
    name="short_request_timeouts",
    title="Short request timeouts",
    severity="medium",
    settings=("request.timeout.ms", "delivery.timeout.ms"),
    advice=(
        "Leave request.timeout.ms at 30 s (librdkafka: request.timeout.ms of the topic; franz-go: "
        "ProduceRequestTimeout; sarama: Producer.Timeout; kafkajs: timeout of send), and bound how long a "
        "record may take with delivery.timeout.ms (librdkafka: message.timeout.ms). A shorter one makes "
        "retries of what the broker has, and more work for brokers that are behind."
    ),
    find=find,
    source=(
        "AWS, best practices for Apache Kafka clients: request.timeout.ms of 10 s at least; Kafka's "
        "documentation of request.timeout.ms"
    ),
    thresholds={
        "timeout_ms": Threshold(10_000, "ms", "AWS, best practices for Apache Kafka clients"),
        "batches": Threshold(20, "batches", "rule of thumb: more than a try by hand"),
    },
)
