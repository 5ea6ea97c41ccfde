"""A client that sends to a broker that does not lead, again and again, and does not ask who does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, host, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

MOVED = ("NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")
WHO = ("cluster", "client_id", "host")
OF = (*WHO, "api", "topic", "partition")
AT = ("capture", "connection", "exchange", "broker")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Errors on one connection about one partition, counted anew whenever the client asks for metadata, and
    when a broker takes what it sends of that partition: it was told the leader in the answer (KIP-951).

    A client that has many requests under way gets some errors before it can do either.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_host = host().alias("host")
    produced, fetched = (
        table.where(F.col("topic").isNotNull()).select(
            *("cluster", "client_id", of_host, F.lit(api).alias("api"), "topic", "partition"),
            *("time", "error", *AT),
        )
        for api, table in (("Produce", tables.produce), ("Fetch", tables.fetch))
    )
    sent = produced.union(fetched)
    moved = sent.where(F.col("error").isin(*MOVED)).withColumn("kind", F.lit("moved"))
    taken = (
        sent.where(F.col("error") == "NONE")
        .groupBy(*OF, F.date_trunc("second", "time"))
        .agg(F.min("time").alias("time"))
        .select(*OF, "time", F.lit("taken").alias("kind"))
    )
    asked = (
        tables.some_frames("cluster", "client_id", "client", "time", "api", "side")
        .where((F.col("api") == "Metadata") & (F.col("side") == "request"))
        .select("cluster", "client_id", of_host, "time", F.lit("asked").alias("kind"))
    )
    runs = (
        moved.unionByName(taken, allowMissingColumns=True)
        .unionByName(asked, allowMissingColumns=True)
        .withColumns(
            {
                "asks": F.count_if(F.col("kind") == "asked").over(Window.partitionBy(*WHO).orderBy("time")),
                "takes": F.count_if(F.col("kind") == "taken").over(Window.partitionBy(*OF).orderBy("time")),
            }
        )
        .where(F.col("kind") == "moved")
        .groupBy(*OF, "capture", "connection", "broker", "asks", "takes")
        .agg(F.count("*").alias("count"), *measured())
    )
    span_s = F.col("last").cast("double") - F.col("first").cast("double")
    heedless = (F.col("count") >= thresholds["errors"]) & (span_s >= thresholds["span_s"])
    rows = (
        runs.where(heedless)
        .groupBy("cluster", "client_id", "broker", "topic", "partition")
        .agg(
            F.sum("count").alias("count"),
            F.max(span_s).alias("longest_s"),
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.max_by("evidence", "count").alias("evidence"),
        )
    )
    what = F.format_string(
        "%d requests to broker %s, which does not lead it and said so, for %.1f s without asking who does",
        "count",
        "broker",
        "longest_s",
    )
    subject = F.format_string("partition %s-%d", "topic", "partition")
    return finding(rows, what, severity="high", subject=subject)


DETECTOR = Detector(
    name="stale_leader",
    title="Stale leader",
    severity="high",
    settings=("metadata.max.age.ms", "retry.backoff.ms", "topic.metadata.refresh.fast.interval.ms"),
    advice=(
        "On NOT_LEADER_OR_FOLLOWER ask for Metadata and send to the leader it names. Libraries do; a "
        "connection that is pinned to a broker (such as a leader that was dialled once) has to be made "
        "anew by whoever made it. Waits between attempts are retry.backoff.ms (librdkafka: also "
        "topic.metadata.refresh.fast.interval.ms)."
    ),
    find=find,
    source="Kafka's protocol guide: on NOT_LEADER_OR_FOLLOWER clients refresh their metadata; KIP-951",
    thresholds={
        "errors": Threshold(10, "errors", "twice max.in.flight.requests.per.connection, 5"),
        "span_s": Threshold(
            3, "s", "rule of thumb: asking takes ms; requests under way are answered by then"
        ),
    },
)
