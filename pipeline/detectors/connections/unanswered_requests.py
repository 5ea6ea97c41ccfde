"""Requests that a client gives up: it closes the connection, or goes on with another, while they wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.captures.captured import ENDED_BY_BROKER, ENDED_BY_CLIENT
from klamm.pipeline.detectors.detector import Detector, Threshold, finding, host, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

# They wait for records or other members, and a client that ends does not wait for them.
LONG = ("Fetch", "ShareFetch", "JoinGroup", "SyncGroup")
# librdkafka gives these up when the next is due, whatever its settings say, and the connection with them.
HEARTBEATS = ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat")

OF_REQUESTS = (
    *("cluster", "client_id", "api", "capture", "connection", "exchange", "time"),
    *("latency_ms", "answered"),
)


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """A client that gives up closes its end, which the broker sees only when it has answered: so the next
    connection that the client makes to that broker counts as the end, if the answer comes later than that
    and nothing more is asked on the old one.
    What a broker leaves unanswered when it stops is no finding, nor what a client does when it ends, nor what
    is lost with a heartbeat that was given up.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    began = F.coalesce("opened", "first")
    peers = Window.partitionBy("cluster", "broker", "client_id", host()).orderBy(began)
    of_client = Window.partitionBy("cluster", "client_id", host())
    connections = tables.connections.where(F.col("lost") == 0).select(
        "capture",
        "connection",
        F.coalesce("why", F.lit("")).alias("why"),
        F.coalesce("closed", "last").alias("closed"),
        F.lead(began).over(peers).alias("next"),
        F.max(F.coalesce("closed", "last")).over(of_client).cast("double").alias("client_ended"),
    )
    due = F.col("awaits") & F.col("request_bytes").isNotNull() & ~F.col("api").isin(*LONG, *HEARTBEATS)
    late = F.coalesce(F.col("latency_ms") >= thresholds["wait_s"] * 1000, ~F.col("answered"))
    asked = F.col("time").cast("double")
    answered = asked + F.coalesce(F.col("latency_ms") / 1000, F.lit(float("inf")))
    of_one = Window.partitionBy("capture", "connection")
    beating = F.max(F.when(F.col("api").isin(*HEARTBEATS), answered)).over(of_one)
    waiting = (
        tables.exchanges.withColumn("last_asked", F.max(asked).over(of_one))
        .withColumn("beating", F.coalesce(beating, F.lit(0.0)))
        .where(due & late)
        .select(*OF_REQUESTS, "last_asked", "beating")
    )
    closed, anew = F.col("closed").cast("double"), F.col("next").cast("double")
    ending_s = thresholds["ending_s"]
    by_client = F.col("why").isin(*ENDED_BY_CLIENT)
    by_broker = F.col("why").isin(*ENDED_BY_BROKER)
    waited_s = (
        F.when(by_broker, None)
        .when(~F.col("answered") & (closed - asked >= thresholds["stuck_s"]), closed - asked)
        .when(F.col("beating") > F.least(anew, closed), None)
        .when((anew > F.col("last_asked")) & (anew < F.least(answered, closed)), anew - asked)
        .when(~F.col("answered") & by_client & (F.col("client_ended") - closed > ending_s), closed - asked)
    )
    given_up = (
        waiting.join(connections, ["capture", "connection"])
        .withColumn("waited_s", waited_s)
        .where(F.col("waited_s") >= thresholds["wait_s"])
    )
    found = given_up.groupBy("cluster", "client_id").agg(
        F.count("*").alias("count"),
        F.count_distinct("capture", "connection").alias("connections"),
        F.percentile_approx("waited_s", 0.5).alias("median_s"),
        F.mode("api").alias("api"),
        *measured(),
    )
    enough = F.col("connections") >= thresholds["connections"]
    what = F.format_string(
        "gave up %d requests on %d connections, most of them %s, after %.1f s without an answer (median)",
        "count",
        "connections",
        "api",
        "median_s",
    )
    return finding(found.where(enough), what, severity="high")


DETECTOR = Detector(
    name="unanswered_requests",
    title="Requests without an answer, client timeouts",
    severity="high",
    settings=("request.timeout.ms", "socket.timeout.ms", "delivery.timeout.ms"),
    advice=(
        "Find out why the broker takes so long (load, quota, acks=all with a slow follower). Raise "
        "request.timeout.ms (librdkafka: socket.timeout.ms) towards its default: a request that is given up "
        "is often carried out, and its retry is more load."
    ),
    find=find,
    source="Kafka's documentation of request.timeout.ms (30 s); librdkafka's of socket.timeout.ms (60 s)",
    thresholds={
        "connections": Threshold(2, "connections", "rule of thumb: once may be a broken network"),
        "ending_s": Threshold(
            2, "s", "rule of thumb: a client that ends closes its connections within this time"
        ),
        "wait_s": Threshold(1, "s", "rule of thumb: a client that ends waits for less"),
        "stuck_s": Threshold(30, "s", "the default of request.timeout.ms"),
    },
)
