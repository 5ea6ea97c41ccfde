"""A client that asks for metadata all the time, though nothing has changed and no group of it rebalances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

REBALANCING = ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Requests soon after another on the same connection, without an error that would be a reason. Consumers
    ask when their group rebalances, and it may be others that make it do so.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_one = Window.partitionBy("capture", "connection").orderBy("exchange")
    well = F.col("answered") & (F.size("errors") == 0)
    seconds = F.col("time").cast("double")
    at = F.date_trunc("second", "time")
    asked = tables.exchanges.where((F.col("api") == "Metadata") & well).select(
        at.alias("second"),
        "cluster",
        "client_id",
        "capture",
        "connection",
        "exchange",
        "time",
        F.row_number().over(of_one).alias("nth"),
        (seconds - F.lag(seconds).over(of_one)).alias("gap_s"),
    )
    again = asked.where((F.col("nth") > thresholds["of_start"]) & (F.col("gap_s") < thresholds["gap_s"]))
    alone = again.join(F.broadcast(_rebalancing(tables)), ["cluster", "client_id", "second"], "left_anti")
    stormy = alone.groupBy("cluster", "client_id").agg(
        F.count("*").alias("count"),
        F.count_distinct("second").alias("seconds"),
        *measured(),
    )
    span_s = F.col("last").cast("double") - F.col("first").cast("double") + 1
    enough = (F.col("count") >= thresholds["requests"]) & (F.col("seconds") >= thresholds["share"] * span_s)
    what = F.format_string(
        "asked for metadata %d times in %.0f s, in %d of these seconds, without an error before it",
        "count",
        span_s,
        "seconds",
    )
    return finding(stormy.where(enough), what)


def _rebalancing(tables: Tables) -> DataFrame:
    """Seconds in which a group of the client rebalances, and those before and after them."""
    from pyspark.sql import functions as F

    is_part = F.col("api").isin("JoinGroup", "SyncGroup", "LeaveGroup") | F.col("error").isin(*REBALANCING)
    given = (F.col("api") == "ConsumerGroupHeartbeat") & F.col("assigned").isNotNull()
    around = [F.date_trunc("second", F.col("time") + F.expr(f"interval {by} seconds")) for by in (-1, 0, 1)]
    rows = tables.groups.where(is_part | given)
    return rows.select("cluster", "client_id", F.explode(F.array(*around)).alias("second")).distinct()


DETECTOR = Detector(
    name="metadata_storm",
    title="Metadata storm",
    severity="medium",
    settings=("metadata.max.age.ms", "topic.metadata.refresh.interval.ms", "retry.backoff.ms"),
    advice=(
        "Do not ask for metadata (partitionsFor, describeTopics, list_topics) before each piece of work: the "
        "client keeps it and asks again after errors. Leave metadata.max.age.ms (librdkafka: "
        "topic.metadata.refresh.interval.ms) at its 5 minutes."
    ),
    find=find,
    source="Kafka's documentation of metadata.max.age.ms: a refresh every 5 minutes, and after errors",
    thresholds={
        "requests": Threshold(
            30, "requests", "rule of thumb: ten times the requests of a start and a moved leader"
        ),
        "of_start": Threshold(3, "requests of a connection", "librdkafka asks so often when it begins"),
        "gap_s": Threshold(10, "s", "rule of thumb: a thirtieth of metadata.max.age.ms"),
        "share": Threshold(0.3, "of all seconds", "rule of thumb: after a restart it is over in a few"),
    },
)
