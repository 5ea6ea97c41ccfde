"""Groups in which one member has many more partitions than the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The partitions of all members at the end of each generation that lasted. Answers have the members only
    where they change. A generation of which not all members are seen is left out.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    till_now = Window.partitionBy("cluster", "group", "member_id").orderBy("time", "exchange")
    last_assigned = F.last("assigned", ignorenulls=True).over(till_now)
    members = (
        tables.groups.where((F.col("member_id") != "") & (F.col("generation") > 0))
        .withColumn("assigned", last_assigned)
        .groupBy("cluster", "group", "generation", "member_id")
        .agg(
            F.max_by("client_id", "time").alias("client_id"),
            F.max_by("assigned", F.struct("time", "exchange")).alias("assigned"),
            F.max("members").alias("members"),
            F.min(F.struct("time", "capture", "connection", "exchange")).alias("row"),
            F.max("time").alias("until"),
        )
        .select("*", "row.*")
    )
    generations = (
        members.groupBy("cluster", "group", "generation")
        .agg(
            F.max_by("client_id", "assigned").alias("client_id"),
            F.count("assigned").alias("seen"),
            F.max("members").alias("members"),
            F.sum("assigned").alias("partitions"),
            F.max("assigned").alias("most"),
            F.min("assigned").alias("least"),
            F.max("until").alias("until"),
            *measured(),
        )
        .where(F.col("seen") >= F.coalesce("members", "seen"))
        .withColumn("fair", F.ceil(F.col("partitions") / F.col("seen")))
        .where(F.col("most") - F.col("fair") >= thresholds["excess"])
        .where(F.col("most") >= thresholds["times"] * F.col("fair"))
        .where(F.unix_micros("until") - F.unix_micros("first") >= thresholds["lasting_s"] * 1e6)
    )
    latest = F.struct("first", "client_id", "most", "least", "seen", "partitions", "evidence")
    rows = (
        generations.groupBy("cluster", "group")
        .agg(F.count(F.lit(1)).alias("count"), F.max("until").alias("last"), F.max(latest).alias("latest"))
        .select("cluster", "group", "count", "last", "latest.*")
    )
    what = F.format_string(
        "one member has %d of %d partitions, another %d; there are %d members",
        "most",
        "partitions",
        "least",
        "seen",
    )
    return finding(rows, what, severity="low", subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="uneven_assignment",
    title="Partitions are unevenly assigned",
    severity="low",
    settings=("partition.assignment.strategy", "group.remote.assignor"),
    advice=(
        "RangeAssignor divides topic by topic, so that the first members get what is left over of each. Use "
        "the CooperativeStickyAssignor (librdkafka: cooperative-sticky) or group.protocol=consumer; or "
        "subscribe all members to the same topics, if they are not."
    ),
    find=find,
    source="Kafka's documentation of partition.assignment.strategy; KIP-429, KIP-848",
    thresholds={
        "excess": Threshold(2, "partitions above the fair share", "one more or less is how division goes"),
        "times": Threshold(2, "times the fair share", "rule of thumb: this member has twice the work"),
        "lasting_s": Threshold(10, "s", "rule of thumb: the steps of a cooperative rebalance are shorter"),
    },
)
