"""A producer that does not wait until what it sends is safe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

LOST = {0: "no broker says whether it has them", 1: "those that no follower has are lost with the leader"}


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Idempotence is only there with acks=all, so that these are without it."""
    from pyspark.sql import functions as F

    rows = (
        tables.produce.where(F.col("acks").isin(*LOST) & (F.col("producer_id") < 0))
        .groupBy("cluster", "client_id", "acks")
        .agg(F.count("*").alias("count"), F.sum("records").alias("records"), *measured())
        .where(F.col("count") >= thresholds["batches"])
    )
    none = F.col("acks") == 0
    what = F.format_string(
        "sent %d records in %d batches with acks=%d and without idempotence: %s",
        "records",
        "count",
        "acks",
        F.when(none, LOST[0]).otherwise(LOST[1]),
    )
    return finding(rows, what, severity=F.when(none, "high").otherwise("medium"))


DETECTOR = Detector(
    name="weak_acks",
    title="Weak acks",
    severity="high",
    settings=("acks", "enable.idempotence", "request.required.acks"),
    advice=(
        "Set acks=all (librdkafka: request.required.acks is the same) and enable.idempotence=true, as is "
        "the default of the Java client since 3.0. aiokafka has acks=1 and librdkafka no idempotence "
        "unless told. Keep acks=0 or 1 only for what may be lost."
    ),
    find=find,
    source="KIP-679: acks=all and idempotence are the Java producer's defaults since 3.0",
    thresholds={
        "batches": Threshold(20, "batches", "rule of thumb: more than a try by hand"),
    },
)
