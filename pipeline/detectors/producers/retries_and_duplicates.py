"""A producer that sends the same batches again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

MOVED = ("NOT_LEADER_OR_FOLLOWER", "LEADER_NOT_AVAILABLE", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH")

COUNTED_APART = ("", "NONE", "REQUEST_TIMED_OUT")  # the first is no answer


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """With idempotence a batch is known by producer id, epoch and sequence.

    Without, nothing names a batch. What can be told: an attempt that failed or had no answer, and then
    another to the same partition that begins with a record of the same time. What the client sends anew by
    itself, or after an answer that it did not wait for, cannot be told from new records. Attempts that were
    refused because the leader moved are not counted: to send those again is right.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    batch = (
        "cluster",
        "client_id",
        "topic",
        "partition",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "base_timestamp",
    )
    attempts = Window.partitionBy(*batch).orderBy("time", "capture", "connection", "exchange")
    result = F.coalesce("error", F.lit(""))  # no answer
    sent = (
        tables.produce.where((F.col("batches") > 0) & (F.col("acks") != 0))
        .withColumn("before", F.lag(result).over(attempts))
        .withColumn("plain", F.col("producer_id") < 0)
    )
    by_client = Window.partitionBy("cluster", "client_id")
    again = (
        F.col("before").isNotNull()
        & ~F.col("before").isin(*MOVED)
        & ~(F.col("plain") & (F.col("before") == "NONE"))
    )
    rows = (
        sent.withColumn("again", F.coalesce(again, F.lit(False)))
        .groupBy("cluster", "client_id", "again")
        .agg(
            F.count("*").alias("count"),
            F.count_if(F.col("before") == "").alias("unanswered"),
            F.count_if(F.col("before") == "NONE").alias("taken"),
            F.count_if(F.col("before") == "REQUEST_TIMED_OUT").alias("timed_out"),
            F.array_sort(F.collect_set(F.when(~F.col("before").isin(*COUNTED_APART), F.col("before")))).alias(
                "others"
            ),
            F.count_if("plain").alias("plain"),
            F.approx_count_distinct(F.date_trunc("second", "time")).alias("seconds"),
            *measured(),
        )
        .withColumn("of", F.sum("count").over(by_client))
    )
    enough = (
        (F.col("count") >= thresholds["batches"])
        & (F.col("count") >= thresholds["share"] * F.col("of"))
        & (F.col("seconds") >= thresholds["seconds"])
    )
    known = F.col("unanswered") + F.col("taken") + F.col("timed_out")
    twice = (F.col("plain") > 0) & (F.col("unanswered") + F.col("timed_out") > 0)
    what = F.format_string(
        "%d of %d batches were sent again: %d after no answer, %d after REQUEST_TIMED_OUT, %d though "
        "they were taken, %d after other errors%s%s",
        "count",
        "of",
        "unanswered",
        "timed_out",
        "taken",
        F.col("count") - known,
        F.when(
            F.size("others") > 0, F.concat(F.lit(" ("), F.array_join("others", ", "), F.lit(")"))
        ).otherwise(""),
        F.when(twice, "; without idempotence the topic may have them twice").otherwise(""),
    )
    severity = F.when(twice, "high").otherwise("medium")
    return finding(rows.where(F.col("again") & enough), what, severity=severity)


DETECTOR = Detector(
    name="retries_and_duplicates",
    title="Retries and duplicates",
    severity="high",
    settings=(
        "request.timeout.ms",
        "delivery.timeout.ms",
        "retries",
        "retry.backoff.ms",
        "enable.idempotence",
    ),
    advice=(
        "Give brokers time to answer: request.timeout.ms at its 30 s (librdkafka: socket.timeout.ms too, "
        "60 s), retry.backoff.ms not below its 100 ms. With enable.idempotence=true what is sent twice is "
        "written once."
    ),
    find=find,
    source="KIP-91 (delivery.timeout.ms) and KIP-98 (sequence numbers)",
    thresholds={
        "batches": Threshold(
            20, "batches sent again", "rule of thumb: more than were under way to a broker that stops"
        ),
        "share": Threshold(0.05, "of all attempts", "rule of thumb: more than in a rolling restart"),
        "seconds": Threshold(
            5, "seconds with such", "rule of thumb: a restart of a broker gives them in one or two"
        ),
    },
)
