"""Members that end without leaving their group, which then waits until their sessions are over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.captures.captured import ENDED_BY_CLIENT
from klamm.pipeline.detectors.detector import CONSUMER_SESSION, Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Members whose last request was answered well, and whose client then closed the connection. Static ones
    stay members on purpose, so that they have their partitions again after a restart.
    """
    from pyspark.sql import functions as F

    of_epoch = (F.col("api") == "ConsumerGroupHeartbeat") & (F.col("generation") < 0)
    last = F.struct("time", "exchange", "capture", "connection", "client_id", "error")
    session_ms = F.coalesce("session_timeout_ms", F.lit(thresholds["consumer_session_timeout_ms"]))
    members = (
        tables.groups.where(F.col("member_id") != "")
        .groupBy("cluster", "group", "member_id")
        .agg(
            F.bool_or((F.col("api") == "LeaveGroup") | of_epoch).alias("left"),
            F.max("instance_id").alias("instance_id"),
            F.max("session_timeout_ms").alias("session_timeout_ms"),
            F.max(last).alias("last"),
        )
        .where(~F.col("left") & F.col("instance_id").isNull() & (F.col("last.error") == "NONE"))
        .select("cluster", "group", session_ms.alias("session_ms"), "last.*")
    )
    closed = tables.connections.where(F.col("why").isin(*ENDED_BY_CLIENT))
    silent_s = (F.unix_micros("closed") - F.unix_micros("time")) / 1e6
    rows = (
        members.join(closed.select("capture", "connection", "closed"), ["capture", "connection"])
        .where(silent_s <= thresholds["silent_s"])
        .groupBy("cluster", "group")
        .agg(
            F.count("*").alias("count"),
            F.max_by("client_id", "time").alias("client_id"),
            F.max("session_ms").alias("session_ms"),
            *measured(),
        )
        .where(F.col("count") >= thresholds["stops"])
    )
    what = F.format_string(
        "%d members closed their connections and did not leave: each time the coordinator waits for up to "
        "%.0f s before others get their partitions",
        "count",
        F.col("session_ms") / 1000,
    )
    return finding(rows, what, subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="unclean_stops",
    title="Consumers that end without leaving their group",
    severity="medium",
    settings=("session.timeout.ms", "group.instance.id"),
    advice=(
        "Close the consumer when the process is told to end: on SIGTERM, and before the grace period of the "
        "orchestrator is over (Kubernetes: terminationGracePeriodSeconds). Kafka Streams leaves only with "
        "CloseOptions.leaveGroup(true). Members that are to come back soon have a group.instance.id."
    ),
    find=find,
    source="Kafka's documentation of KafkaConsumer.close(); KIP-812: Kafka Streams may leave when it closes",
    thresholds={
        "stops": Threshold(3, "members of a group", "rule of thumb: one or two are crashes"),
        "silent_s": Threshold(
            10, "s from the last answer to the end", "rule of thumb: longer than heartbeat.interval.ms, 3 s"
        ),
        "consumer_session_timeout_ms": CONSUMER_SESSION,
    },
)
