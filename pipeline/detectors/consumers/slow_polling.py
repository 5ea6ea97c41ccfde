"""Consumers whose work between two polls takes longer than max.poll.interval.ms, or nearly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.complete import complete
from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

COMES_BACK = ("JoinGroup", "ConsumerGroupHeartbeat")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Members that exceeded the interval, and those that came near."""
    return _exceeded(tables, thresholds).unionAll(_nearly(tables, thresholds))


def _exceeded(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The client leaves its group, at the earliest so long after it joined, and joins again on the same
    connection, on which a consumer that was closed says no more.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    in_turn = Window.partitionBy("capture", "connection", "group").orderBy("exchange")
    micros = F.unix_micros("time")
    joined = F.when(F.col("api") == "JoinGroup", micros)
    before = in_turn.rowsBetween(Window.unboundedPreceding, -1)
    of_client = Window.partitionBy("cluster", "client_id", "group")
    left = (F.col("api") == "LeaveGroup") | (
        (F.col("api") == "ConsumerGroupHeartbeat") & (F.col("generation") == -1)
    )
    leaves = (
        tables.groups.withColumn("limit_ms", F.max("rebalance_timeout_ms").over(of_client))
        .withColumn("member_ms", (micros - F.last(joined, ignorenulls=True).over(before)) / 1000)
        .withColumn("next", F.lead(F.struct("api", "time")).over(in_turn))
        .where(left & F.col("next.api").isin(*COMES_BACK))
        .where(F.coalesce(F.col("member_ms") >= F.col("limit_ms"), F.lit(True)))
        .withColumn("away_ms", (F.unix_micros("next.time") - micros) / 1000)
    )
    rows = (
        leaves.groupBy("cluster", "client_id", "group")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.max("limit_ms").alias("limit_ms"),
            F.max("away_ms").alias("away_ms"),
            *measured(),
        )
        .where(F.col("count") >= thresholds["left"])
    )
    sentence = "left its group %d times, max.poll.interval.ms=%d after its last poll, and joined again "
    sentence += "up to %.1f s later"
    what = F.format_string(sentence, "count", "limit_ms", F.col("away_ms") / 1000)
    return finding(rows, what, severity="high", subject=F.concat(F.lit("group "), "group"))


def _nearly(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Clients as the Java one ask for more when they are polled: after an answer that one poll hands out in
    whole, the time to the next Fetch is the time to the next poll.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    in_turn = Window.partitionBy("capture", "connection").orderBy("exchange")
    limits = (
        tables.groups.where(F.col("rebalance_timeout_ms") > 0)
        .groupBy("cluster", "client_id", "group")
        .agg(F.min("rebalance_timeout_ms").alias("limit_ms"))
        .groupBy("cluster", "client_id")
        .agg(F.min(F.struct("limit_ms", "group")).alias("its"))
        .select("cluster", "client_id", "its.*")
    )
    micros = F.unix_micros("time")
    fetches = (
        tables.fetch.where(~F.col("is_replica"))
        .groupBy("cluster", "client_id", "capture", "connection", "exchange")
        .agg(
            F.min("time").alias("time"),
            F.max("latency_ms").alias("latency_ms"),
            F.sum("records").alias("records"),
        )
        .withColumn(
            "answer",
            F.lag(F.struct("records", (micros + F.col("latency_ms") * 1000).alias("micros"))).over(in_turn),
        )
        .withColumn("gap_ms", (micros - F.col("answer.micros")) / 1000)
        .where(F.col("answer.records").between(1, thresholds["max_poll_records"]))
        .join(limits, ["cluster", "client_id"])
        .where(F.col("gap_ms") >= thresholds["share"] * F.col("limit_ms"))
        .where(F.col("gap_ms") < F.col("limit_ms"))
    )
    rows = (
        complete(fetches, tables)
        .groupBy("cluster", "client_id", "group")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.max("gap_ms").alias("gap_ms"),
            F.max("limit_ms").alias("limit_ms"),
            *measured(),
        )
        .where(F.col("count") >= thresholds["gaps"])
    )
    sentence = "asked for no more %d times, for up to %.1f s of max.poll.interval.ms=%d, "
    sentence += "unless it had paused its partitions"
    what = F.format_string(sentence, "count", F.col("gap_ms") / 1000, "limit_ms")
    return finding(rows, what, severity="low", subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="slow_polling",
    title="Polls too slowly",
    severity="high",
    settings=("max.poll.interval.ms", "max.poll.records"),
    advice=(
        "Take fewer records with a poll (max.poll.records), do slow work in a thread of its own while "
        "partitions are paused and polling goes on, or raise max.poll.interval.ms above the longest work."
    ),
    find=find,
    source="KIP-62: a member without a poll in max.poll.interval.ms leaves, and its work is done again",
    thresholds={
        "left": Threshold(2, "times left", "one may be a single stall"),
        "share": Threshold(0.6, "of max.poll.interval.ms", "rule of thumb: half as much again is too much"),
        "gaps": Threshold(3, "gaps", "rule of thumb: one or two are an exception"),
        "max_poll_records": Threshold(500, "records", "default of max.poll.records"),
    },
)
