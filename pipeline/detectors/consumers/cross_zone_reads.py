"""Consumers that say where they are, and yet read from another zone, although theirs has a replica."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

PARTITION = ["cluster", "topic", "partition"]


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Where no replica in sync is in the client's zone there is nothing to be had. klamm knows brokers by
    their ids, an import by their addresses.
    """
    from pyspark.sql import functions as F

    told = tables.metadata.where(F.col("leader_rack").isNotNull())
    racks = told.groupBy("cluster", F.col("leader").alias("node")).agg(F.max("leader_rack").alias("rack"))
    replicas = (
        tables.metadata.select(*PARTITION, F.explode("in_sync").alias("node"))
        .distinct()
        .join(racks, ["cluster", "node"])
        .groupBy(*PARTITION)
        .agg(F.collect_set("rack").alias("zones"))
    )
    either = F.explode(F.array(F.col("leader").cast("string"), F.col("leader_address")))
    brokers = told.select("cluster", either.alias("broker"), F.col("leader_rack").alias("zone")).distinct()
    reads = (
        tables.fetch.where((F.col("rack") != "") & ~F.col("is_replica") & (F.col("bytes") > 0))
        .join(brokers, ["cluster", "broker"])
        .join(replicas, PARTITION)
        .withColumn("away", (F.col("zone") != F.col("rack")) & F.array_contains("zones", F.col("rack")))
    )
    rows = (
        reads.groupBy("cluster", "client_id", "rack")
        .agg(F.sum("bytes").alias("all"), F.sum(F.when(F.col("away"), F.col("bytes"))).alias("bytes"))
        .where(
            (F.col("bytes") >= thresholds["bytes"]) & (F.col("bytes") >= thresholds["share"] * F.col("all"))
        )
        .join(
            reads.where("away")
            .groupBy("cluster", "client_id", "rack")
            .agg(F.count("*").alias("count"), *measured()),
            ["cluster", "client_id", "rack"],
        )
    )
    what = F.format_string(
        "reads %.1f of %.1f MB from other zones, though zone %s has replicas in sync",
        F.col("bytes") / (1 << 20),
        F.col("all") / (1 << 20),
        "rack",
    )
    return finding(rows, what)


DETECTOR = Detector(
    name="cross_zone_reads",
    title="Reads from another zone",
    severity="medium",
    settings=("client.rack", "replica.selector.class", "broker.rack"),
    advice=(
        "Set replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector on the brokers: "
        "else they ignore client.rack, and all reads go to leaders. Cloud providers bill what crosses zones. "
        "Where it is set, look at whether the client's client.rack is spelled as broker.rack is."
    ),
    find=find,
    source="KIP-392: allow consumers to fetch from the closest replica",
    thresholds={
        "bytes": Threshold(1 << 20, "bytes", "rule of thumb: less costs nothing"),
        "share": Threshold(0.25, "of what it reads", "rule of thumb: while a replica catches up, some is"),
    },
)
