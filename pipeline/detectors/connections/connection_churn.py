"""A client that makes connections for little, and closes them soon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.captures.captured import ENDED_BY_CLIENT
from klamm.pipeline.detectors.detector import Detector, Threshold, finding, host, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Connections that were answered and closed by the client itself; not those refused by SASL."""
    from pyspark.sql import functions as F

    life_s = F.col("closed").cast("double") - F.col("opened").cast("double")
    by_client = F.col("why").isin(*ENDED_BY_CLIENT)
    used = (F.col("responses") > 0) & F.col("auth_error").isNull()
    rows = tables.connections.select(
        "*",
        life_s.alias("life_s"),
        host().alias("host"),
        F.lit(0).cast("bigint").alias("exchange"),
    )
    short = rows.where(by_client & used & (F.col("life_s") <= thresholds["life_s"]))
    found = short.groupBy("cluster", "client_id").agg(
        F.count("*").alias("count"),
        F.count_distinct("host").alias("hosts"),
        F.percentile_approx("life_s", 0.5).alias("median_s"),
        F.percentile_approx("requests", 0.5).alias("median_requests"),
        *measured("opened"),
    )
    span_s = F.col("last").cast("double") - F.col("first").cast("double")
    a_minute = F.col("count") * 60 / F.greatest(span_s, F.lit(1.0))
    enough = (F.col("count") >= thresholds["connections"] * F.col("hosts")) & (
        a_minute >= thresholds["a_minute"] * F.col("hosts")
    )
    what = F.format_string(
        "made %d connections in %.0f s from %d host(s) and closed them again, after %.1f s and %d requests "
        "(medians)",
        "count",
        span_s,
        "hosts",
        "median_s",
        "median_requests",
    )
    return finding(found.where(enough), what)


DETECTOR = Detector(
    name="connection_churn",
    title="Connections made and thrown away",
    severity="medium",
    settings=("connections.max.idle.ms", "max.connection.creation.rate"),
    advice=(
        "Make one producer or consumer when the process starts and keep it; threads can share a producer. A "
        "client for each record or web request pays for connections, metadata and a producer id each time."
    ),
    find=find,
    source="Kafka's documentation of KafkaProducer: one instance shared by threads is faster than several",
    thresholds={
        "connections": Threshold(
            15, "connections of a host", "rule of thumb: three times the connections of a start"
        ),
        "a_minute": Threshold(
            12, "connections of a host", "rule of thumb: more than a job of every minute makes"
        ),
        "life_s": Threshold(
            10, "s", "rule of thumb; connections.max.idle.ms keeps an idle one for 9 minutes"
        ),
    },
)
