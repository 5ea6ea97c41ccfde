"""Groups that rebalance again and again, because members keep coming and going."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

JOINS = ("JoinGroup", "ConsumerGroupHeartbeat")
MINUTE = "60 seconds"
STEP = "20 seconds"  # minutes overlap, so that one of them has all of a short storm


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """A rebalance is a generation, or a member epoch, that was not there before. The finding is about the
    client with the most members: a client that stays is one member, one that comes and goes is many.
    """
    from pyspark.sql import functions as F

    joins = tables.groups.where(
        F.col("api").isin(*JOINS) & (F.col("error") == "NONE") & (F.col("generation") > 0)
    )
    clients = (
        joins.groupBy("cluster", "group", "client_id")
        .agg(F.count_distinct("member_id").alias("came"))
        .groupBy("cluster", "group")
        .agg(
            F.max_by("client_id", F.struct("came", "client_id")).alias("client_id"),
            F.sum("came").alias("came"),
        )
    )
    row = F.struct("time", "capture", "connection", "exchange")
    rows = (
        joins.groupBy("cluster", "group", "generation")
        .agg(F.min(row).alias("row"))
        .select("cluster", "group", "generation", "row.*")
        .groupBy("cluster", "group", F.window("time", MINUTE, STEP))
        .agg(F.count(F.lit(1)).alias("count"), *measured())
        .where(F.col("count") >= thresholds["count"])
        .groupBy("cluster", "group")
        .agg(
            F.max("count").alias("count"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.max_by("evidence", "count").alias("evidence"),
        )
        .join(clients, ["cluster", "group"])
    )
    sentence = "%d rebalances within a minute; %d members joined in all the time"
    what = F.format_string(sentence, "count", "came")
    return finding(rows, what, subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="rebalance_storm",
    title="A group rebalances again and again",
    severity="medium",
    settings=(
        "group.instance.id",
        "session.timeout.ms",
        "max.poll.interval.ms",
        "group.initial.rebalance.delay.ms",
    ),
    advice=(
        "Keep consumers open instead of opening one for each task. Members that restart often get a "
        "group.instance.id and a session.timeout.ms longer than their restart; group.protocol=consumer "
        "(KIP-848) or the CooperativeStickyAssignor spares the others."
    ),
    find=find,
    source="KIP-345, KIP-429, KIP-848: in a rebalance of the classic protocol all members stop",
    thresholds={
        "count": Threshold(
            10,
            "rebalances within a minute",
            "rule of thumb: a group of five that starts or is deployed anew member by member has less",
        ),
    },
)
