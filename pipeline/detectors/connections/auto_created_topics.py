"""Topics that came into being because a client asked about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Unknown when it was asked about first, known soon after, and no CreateTopics in between."""
    from pyspark.sql import functions as F

    asked = F.col("error").isin("UNKNOWN_TOPIC_OR_PARTITION", "LEADER_NOT_AVAILABLE") & F.col("auto_create")
    who = F.struct("time", "client_id", "capture", "connection", "exchange")
    topics = (
        tables.metadata.where(F.col("topic").isNotNull())
        .groupBy("cluster", "topic")
        .agg(
            F.min(F.when(asked, who)).alias("asked"),
            F.min(F.when(F.col("error") == "NONE", F.col("time"))).alias("known"),
        )
    )
    made = (
        tables.exchanges.where(F.col("api") == "CreateTopics")
        .select("cluster", F.explode("topics").alias("topic"))
        .distinct()
    )
    after_s = F.col("known").cast("double") - F.col("asked.time").cast("double")
    rows = (
        topics.where((after_s > 0) & (after_s <= thresholds["after_s"]))
        .join(made, ["cluster", "topic"], "left_anti")
        .select("cluster", "topic", "asked.*")
    )
    found = rows.groupBy("cluster", "client_id").agg(
        F.count("*").alias("count"), F.array_sort(F.collect_set("topic")).alias("topics"), *measured()
    )
    what = F.format_string(
        "%d topic(s) came into being when it asked about them: %s%s",
        "count",
        F.array_join(F.slice("topics", 1, 5), ", "),
        F.when(F.col("count") > 5, ", ...").otherwise(""),
    )
    return finding(found.where(F.col("count") >= thresholds["topics"]), what)


DETECTOR = Detector(
    name="auto_created_topics",
    title="Topics created by accident (auto-create)",
    severity="medium",
    settings=("auto.create.topics.enable", "allow.auto.create.topics"),
    advice=(
        "Set auto.create.topics.enable=false on the brokers and make topics on purpose, with the partitions, "
        "replicas and retention that they need: a typing error in a name makes a topic too. Consumers: "
        "allow.auto.create.topics=false."
    ),
    find=find,
    source="KIP-361: consumer configuration to disable auto topic creation",
    thresholds={
        "topics": Threshold(1, "topics", "one with defaults that nobody chose is enough"),
        "after_s": Threshold(30, "s", "rule of thumb: brokers take a few; later, somebody else made it"),
    },
)
