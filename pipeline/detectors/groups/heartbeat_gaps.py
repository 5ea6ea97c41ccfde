"""Members that are silent nearly as long as, or longer than, their session lasts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.complete import complete
from klamm.pipeline.detectors.detector import CONSUMER_SESSION, Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

ALIVE = ("NONE", "REBALANCE_IN_PROGRESS")  # the coordinator took it for a sign of life
GONE = ("UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The time from the last answer to a member to its next request on the same connection: a coordinator
    that moved means another connection, and is no gap.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_member = Window.partitionBy("cluster", "group", "member_id")
    in_turn = Window.partitionBy("capture", "connection", "group", "member_id").orderBy("exchange")
    kip_848 = F.when(F.col("api") == "ConsumerGroupHeartbeat", thresholds["consumer_session_timeout_ms"])
    micros = F.unix_micros("time")
    alive_at = F.when(
        F.col("error").isin(*ALIVE) & (F.col("api") != "LeaveGroup") & ~(F.col("generation") < 0),
        micros + F.col("latency_ms") * 1000,
    )
    gaps = (
        tables.groups.where(F.col("member_id") != "")
        .withColumn("session_ms", F.max(F.coalesce("session_timeout_ms", kip_848)).over(of_member))
        .withColumn("gap_ms", (micros - F.lag(alive_at).over(in_turn)) / 1000)
        .where(F.col("error").isin(*ALIVE, *GONE))
        .where(F.col("gap_ms") >= thresholds["share"] * F.col("session_ms"))
    )
    rows = (
        complete(gaps, tables)
        .groupBy("cluster", "client_id", "group")
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.max(F.struct("gap_ms", "session_ms")).alias("longest"),
            F.count_if(F.col("error").isin(*GONE)).alias("gone"),
            *measured(),
        )
        .where(F.col("count") >= thresholds["count"])
    )
    sentence = "silent %d times, for up to %.1f s of the %.0f s that its session lasts; "
    sentence += "%d times it was no member any more then"
    what = F.format_string(
        sentence, "count", F.col("longest.gap_ms") / 1000, F.col("longest.session_ms") / 1000, "gone"
    )
    severity = F.when(F.col("gone") > 0, "high").otherwise("medium")
    return finding(rows, what, severity=severity, subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="heartbeat_gaps",
    title="Heartbeats come nearly too late",
    severity="high",
    settings=("heartbeat.interval.ms", "session.timeout.ms", "group.consumer.session.timeout.ms"),
    advice=(
        "heartbeat.interval.ms is at most a third of session.timeout.ms, so that two may be lost. Where it "
        "is, the process stands still: look for garbage collection, a limit on its CPU, or work that blocks "
        "its event loop."
    ),
    find=find,
    source="Kafka's documentation of heartbeat.interval.ms and session.timeout.ms",
    thresholds={
        "share": Threshold(
            0.66, "of session.timeout.ms", "twice the third that heartbeat.interval.ms should be"
        ),
        "count": Threshold(3, "gaps", "rule of thumb: one or two are a pause, as of a deployment nearby"),
        "consumer_session_timeout_ms": CONSUMER_SESSION,
    },
)
