"""A client that has many connections to one broker open at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, host, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

WHO = ("cluster", "client_id", "host", "broker")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """By host: processes elsewhere with the same client id are others. Connections without an answer count
    not: they may have been refused.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    rows = tables.connections.where(F.col("responses") > 0).select(
        "cluster",
        "client_id",
        host().alias("host"),
        "broker",
        F.col("first").alias("time"),
        F.col("closed").alias("until"),
        "capture",
        "connection",
        F.lit(0).cast("bigint").alias("exchange"),
    )
    ends = rows.where(F.col("until").isNotNull()).withColumn("time", F.col("until"))
    in_turn = Window.partitionBy(*WHO).orderBy("time", "step").rowsBetween(Window.unboundedPreceding, 0)
    steps = rows.withColumn("step", F.lit(1)).unionByName(ends.withColumn("step", F.lit(-1)))
    found = (
        steps.withColumn("open", F.sum("step").over(in_turn))
        .where(F.col("step") > 0)
        .groupBy(*WHO)
        .agg(F.max("open").alias("most"), F.count("*").alias("made"), *measured())
        .where(F.col("most") >= thresholds["connections"])
        .groupBy("cluster", "client_id")
        .agg(
            F.max(F.struct("most", "host", "broker")).alias("worst"),
            F.sum("made").alias("count"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.max_by("evidence", "most").alias("evidence"),
        )
    )
    what = F.format_string(
        "had %d connections open at once from %s to broker %s", "worst.most", "worst.host", "worst.broker"
    )
    return finding(found, what, severity="low")


DETECTOR = Detector(
    name="many_connections",
    title="Many connections at once",
    severity="low",
    settings=("max.connections.per.ip", "max.connections", "connections.max.idle.ms"),
    advice=(
        "Share one producer among the threads of a process: a producer of Java, librdkafka, franz-go and "
        "kafkajs may be used by all of them. Each client has a connection or two to each broker, with a "
        "thread, buffers and metadata of its own. Give processes that share a host client ids of their own."
    ),
    find=find,
    source="Kafka's documentation of KafkaProducer: one instance shared by threads is faster than several",
    thresholds={
        "connections": Threshold(
            10, "connections of a host to a broker", "rule of thumb: a client makes up to three"
        ),
    },
)
