"""The assignments of the members of each group, generation by generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def generations(tables: Tables, lasting_s: float) -> DataFrame:
    """The partitions of all members at the end of each generation that lasted. Answers have them only where
    they change. A generation of which not all members are seen is left out.

    By generation: `seen` members, their `partitions`, the `most` and `least` of a member, whose client ids
    are `busiest` and `idlest`, `until`, and what `measured` has.
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
    return (
        members.groupBy("cluster", "group", "generation")
        .agg(
            F.max_by("client_id", "assigned").alias("busiest"),
            F.min_by("client_id", "assigned").alias("idlest"),
            F.count("assigned").alias("seen"),
            F.max("members").alias("members"),
            F.sum("assigned").alias("partitions"),
            F.max("assigned").alias("most"),
            F.min("assigned").alias("least"),
            F.max("until").alias("until"),
            *measured(),
        )
        .where(F.col("seen") >= F.coalesce("members", "seen"))
        .where(F.unix_micros("until") - F.unix_micros("first") >= lasting_s * 1e6)
    )


def by_group(chosen: DataFrame, *columns: str) -> DataFrame:
    """Of each group how many generations were chosen, and of the latest of them these columns, its beginning
    and its evidence.
    """
    from pyspark.sql import functions as F

    latest = F.struct("first", *columns, "evidence")
    return (
        chosen.groupBy("cluster", "group")
        .agg(F.count(F.lit(1)).alias("count"), F.max("until").alias("last"), F.max(latest).alias("latest"))
        .select("cluster", "group", "count", "last", "latest.*")
    )
