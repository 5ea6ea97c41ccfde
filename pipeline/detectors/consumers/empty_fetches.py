"""Consumers that ask again and again for what is not there, instead of letting the broker wait for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Answers without records and without error that came at once; long polls are none."""
    from pyspark.sql import functions as F

    failed = (F.col("error") != "NONE") | (F.col("session_error") != "NONE")
    requests = (
        tables.fetch.where(~F.col("is_replica") & F.col("answered"))
        .groupBy("cluster", "client_id", "capture", "connection", "exchange")
        .agg(
            F.min("time").alias("time"),
            F.max("latency_ms").alias("latency_ms"),
            F.max("max_wait_ms").alias("max_wait_ms"),
            F.max("min_bytes").alias("min_bytes"),
            F.sum("bytes").alias("bytes"),
            F.count_if(failed).alias("failed"),
        )
        .withColumn("micros", F.unix_micros("time"))
    )
    empty = (F.coalesce("bytes", F.lit(0)) == 0) & (F.col("failed") == 0)
    hasty = F.coalesce(empty & (F.col("latency_ms") < thresholds["latency_ms"]), F.lit(False))
    rows = (
        requests.groupBy("cluster", "client_id", "capture", "connection")
        .agg(
            F.count_if(hasty).alias("count"),
            F.count_distinct(F.when(hasty, F.date_trunc("second", "time"))).alias("in_seconds"),
            F.count(F.lit(1)).alias("fetches"),
            ((F.max("micros") - F.min("micros")) / 1e6).alias("seconds"),
            F.avg(F.when(hasty, F.col("latency_ms"))).alias("latency_ms"),
            F.max("max_wait_ms").alias("max_wait_ms"),
            F.min("min_bytes").alias("min_bytes"),
            *measured(),
        )
        .where(F.col("count") >= thresholds["count"])
        .where(F.col("count") >= thresholds["share"] * F.col("fetches"))
        .where(F.col("count") >= thresholds["per_s"] * F.col("seconds"))
        .where(F.col("in_seconds") >= thresholds["in_seconds"])
        .groupBy("cluster", "client_id")
        .agg(
            F.sum("count").alias("count"),
            F.sum("fetches").alias("fetches"),
            F.max(F.col("count") / F.greatest("seconds", F.lit(1))).alias("per_s"),
            F.avg("latency_ms").alias("latency_ms"),
            F.max("max_wait_ms").alias("max_wait_ms"),
            F.min("min_bytes").alias("min_bytes"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.max_by("evidence", "count").alias("evidence"),
        )
    )
    sentence = "%d of %d fetches brought nothing, after %.0f ms each and %.0f in a second on a connection, "
    sentence += "with fetch.max.wait.ms=%d and fetch.min.bytes=%d"
    columns = ("count", "fetches", "latency_ms", "per_s", "max_wait_ms", "min_bytes")
    return finding(rows, F.format_string(sentence, *columns))


DETECTOR = Detector(
    name="empty_fetches",
    title="Asks for nothing, again and again",
    severity="medium",
    settings=("fetch.max.wait.ms", "fetch.min.bytes"),
    advice=(
        "Leave fetch.max.wait.ms (librdkafka: fetch.wait.max.ms) at 500 and fetch.min.bytes at 1: the broker "
        "answers as soon as there is a record, and a shorter wait makes nothing faster."
    ),
    find=find,
    source="Kafka's documentation of fetch.max.wait.ms and fetch.min.bytes",
    thresholds={
        "latency_ms": Threshold(100, "ms", "a fifth of fetch.max.wait.ms, which is 500"),
        "per_s": Threshold(5, "empty answers per second and connection", "with the defaults it is 2 at most"),
        "count": Threshold(100, "empty answers", "rule of thumb: less costs nobody anything"),
        "in_seconds": Threshold(
            5, "different seconds", "a new leader that does not know its high watermark answers at once, too"
        ),
        "share": Threshold(
            0.5, "of the fetches of a connection", "rule of thumb: it has mostly nothing to read"
        ),
    },
)
