"""A client beyond its quota: brokers hold it back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    from pyspark.sql import functions as F

    answer = ("cluster", "client_id", "capture", "connection", "exchange", "time", "throttle_ms")
    held = [table.where(F.col("throttle_ms") > 0) for table in (tables.produce, tables.fetch, tables.groups)]
    rows = (
        reduce(lambda one, other: one.union(other), [table.select(*answer) for table in held])
        .dropDuplicates(["capture", "connection", "exchange"])  # which may be about many partitions
        .groupBy("cluster", "client_id")
        .agg(
            F.count("*").alias("count"),
            F.sum("throttle_ms").alias("sum_ms"),
            F.max("throttle_ms").alias("longest_ms"),
            *measured(),
        )
    )
    enough = (F.col("count") >= thresholds["answers"]) & (F.col("sum_ms") >= thresholds["throttle_ms"])
    what = F.format_string(
        "%d answers made it wait, %.1f s together, %.1f s at most, in %.0f s",
        "count",
        F.col("sum_ms") / 1e3,
        F.col("longest_ms") / 1e3,
        F.col("last").cast("double") - F.col("first").cast("double"),
    )
    return finding(rows.where(enough), what)


DETECTOR = Detector(
    name="throttled_clients",
    title="Throttled clients",
    severity="medium",
    settings=("producer_byte_rate", "consumer_byte_rate", "request_percentage"),
    advice=(
        "The client has more to do than its quota permits. Raise the quota of the user or client id "
        "(kafka-configs.sh: producer_byte_rate, consumer_byte_rate, request_percentage), or send less: "
        "larger batches, compression."
    ),
    find=find,
    source="KIP-13, KIP-124 and KIP-219: quotas, and throttle_time_ms of answers",
    thresholds={
        "answers": Threshold(3, "answers", "rule of thumb: more than one burst"),
        "throttle_ms": Threshold(
            2000, "ms together", "rule of thumb: two of the samples by which quotas are measured"
        ),
    },
)
