"""A client that is refused, and tries again with the same credentials."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    from pyspark.sql import functions as F

    tried = tables.connections.where(F.col("mechanism").isNotNull() | F.col("auth_error").isNotNull())
    refused = F.col("auth_error").isNotNull()
    totals = tried.groupBy("cluster", "client_id").agg(F.count("*").alias("tries"))
    failed = (
        tried.where(refused)
        .withColumn("exchange", F.lit(0).cast("bigint"))
        .groupBy("cluster", "client_id")
        .agg(
            F.count("*").alias("count"),
            F.max(F.coalesce("mechanism", F.lit("SASL"))).alias("mechanism"),
            F.mode("auth_error").alias("error"),
            *measured("first"),
        )
    )
    rows = failed.join(
        totals.select(F.col("cluster").alias("of_cluster"), F.col("client_id").alias("of_client"), "tries"),
        F.col("cluster").eqNullSafe(F.col("of_cluster")) & F.col("client_id").eqNullSafe(F.col("of_client")),
    )
    enough = (F.col("count") >= thresholds["failures"]) & (
        F.col("count") >= thresholds["share"] * F.col("tries")
    )
    span_s = F.col("last").cast("double") - F.col("first").cast("double")
    what = F.format_string(
        "%d of its %d connections with %s were refused within %.0f s: %s",
        "count",
        "tries",
        "mechanism",
        span_s,
        "error",
    )
    return finding(rows.where(enough), what, severity="high")


DETECTOR = Detector(
    name="authentication_failures",
    title="Authentication that fails again and again",
    severity="high",
    settings=("sasl.jaas.config", "sasl.mechanism", "security.protocol", "reconnect.backoff.max.ms"),
    advice=(
        "Correct the credentials, sasl.mechanism or security.protocol of this client (librdkafka: "
        "sasl.username, sasl.password), and let it end on SASL_AUTHENTICATION_FAILED: retries do not help. "
        "A larger reconnect.backoff.max.ms spares the brokers."
    ),
    find=find,
    source="KIP-152: improve diagnostics for SASL authentication failures",
    thresholds={
        "failures": Threshold(5, "connections", "rule of thumb: more than a person mistypes"),
        "share": Threshold(0.5, "of its connections", "rule of thumb: several may share the client id"),
    },
)
