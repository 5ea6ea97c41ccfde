"""Topics most of whose partitions are led by one broker, which does the work of all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

ANSWER = ("cluster", "topic", "capture", "connection", "exchange", "time")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """By topic, where each answer to Metadata since `lasting_s` before the last one has it so. The brokers
    are those that lead anything in the cluster.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_cluster, of_topic = Window.partitionBy("cluster"), Window.partitionBy("cluster", "topic")
    leaders = (
        tables.metadata.where(F.col("leader") >= 0)
        .groupBy(*ANSWER, "leader")
        .agg(F.count("*").alias("leads"))
        .withColumn("brokers", F.size(F.collect_set("leader").over(of_cluster)))
    )
    answers = leaders.groupBy(*ANSWER).agg(
        F.sum("leads").alias("partitions"),
        F.max(F.struct("leads", "leader")).alias("most"),
        F.max("brokers").alias("brokers"),
    )
    leads, partitions = F.col("most.leads"), F.col("partitions")
    skewed = (leads * F.col("brokers") >= thresholds["times"] * partitions) | (
        leads >= thresholds["share"] * partitions
    )
    skewed &= (partitions >= thresholds["partitions"]) & (F.col("brokers") > 1)
    lately = F.unix_micros(F.max("time").over(of_topic)) - F.unix_micros("time")
    rows = (
        answers.withColumn("skewed", skewed)
        .withColumn("even_at", F.max(F.when(~F.col("skewed"), F.col("time"))).over(of_topic))
        .withColumn("lately_s", lately / 1e6)
        .where(F.col("even_at").isNull() | (F.col("time") > F.col("even_at")))
        .groupBy("cluster", "topic")
        .agg(
            F.count("*").alias("count"),
            F.max_by("most", "time").alias("most"),
            F.max_by("partitions", "time").alias("partitions"),
            F.max_by("brokers", "time").alias("brokers"),
            F.max("lately_s").alias("lasted_s"),
            *measured(),
        )
        .where(F.col("lasted_s") >= thresholds["lasting_s"])
    )
    what = F.format_string(
        "broker %d leads %d of %d partitions; %d brokers lead partitions in this cluster",
        "most.leader",
        "most.leads",
        "partitions",
        "brokers",
    )
    return finding(rows, what, subject=F.concat(F.lit("topic "), "topic"))


DETECTOR = Detector(
    name="leader_skew",
    title="One broker leads most of a topic",
    severity="medium",
    settings=("auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds"),
    advice=(
        "Where other brokers are the preferred leaders, kafka-leader-election.sh --election-type preferred "
        "brings them back, and auto.leader.rebalance.enable=true does so by itself. Where this broker is the "
        "first replica of all, spread the partitions with kafka-reassign-partitions.sh."
    ),
    find=find,
    source="Kafka's documentation of balancing leadership and of auto.leader.rebalance.enable",
    thresholds={
        "partitions": Threshold(6, "partitions", "rule of thumb: of fewer, chance puts most on one broker"),
        "times": Threshold(2.5, "times the fair share", "one of three brokers that leads 5 of 6 partitions"),
        "share": Threshold(0.9, "of all partitions", "of two brokers, none can have 2.5 times its part"),
        "lasting_s": Threshold(10, "s", "rule of thumb: leaders that move one by one are even sooner"),
    },
)
