"""Readers of committed records that wait, at the first record of a transaction, until it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

PARTITION = ("cluster", "topic", "partition")
CONNECTION = ("cluster", "capture", "connection")
READ_COMMITTED = 1


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The last stable offset stays where it is though there are records behind it. The producer is the one
    whose batch begins at that offset.
    """
    from pyspark.sql import functions as F

    waits = (
        _states(tables)
        .where((F.col("error") == "NONE") & (F.col("bytes") == 0))
        .where((F.col("stable") >= 0) & (F.col("high_watermark") > F.col("stable")))
        .groupBy(*PARTITION, "client_id", F.col("stable").alias("base_offset"))
        .agg(
            F.count(F.lit(1)).alias("count"),
            F.max("high_watermark").alias("high_watermark"),
            F.max(F.greatest("time", "until")).alias("until"),
            *measured(),
        )
        .withColumn("last", F.col("until"))
        .withColumn("held_s", (F.unix_micros("last") - F.unix_micros("first")) / 1e6)
        .where(F.col("held_s") >= thresholds["held_s"])
        .join(_beginnings(tables), [*PARTITION, "base_offset"], "left")
    )
    worst = F.struct("partition", "base_offset", "high_watermark", "held_s", "producer", "transactional_id")
    rows = waits.groupBy("cluster", "client_id", "topic").agg(
        F.sum("count").alias("count"),
        F.count_distinct("partition").alias("partitions"),
        F.max_by(worst, "held_s").alias("worst"),
        F.min("first").alias("first"),
        F.max("last").alias("last"),
        F.max_by("evidence", "held_s").alias("evidence"),
    )
    by = F.format_string(
        "transactional id %s of client %s has not ended its transaction",
        "worst.transactional_id",
        F.coalesce("worst.producer", F.lit("without an id")),
    )
    what = F.format_string(
        "saw nothing from offset %d of %s-%d on for %.1f s, though there are records up to offset %d: %s; "
        "%d partition(s) in all",
        *("worst.base_offset", "topic", "worst.partition", "worst.held_s"),
        F.col("worst.high_watermark") - 1,
        F.coalesce(by, F.lit("a transaction is open that began before this capture")),
        "partitions",
    )
    return finding(rows, what, severity="high", subject=F.concat(F.lit("topic "), "topic"))


def _states(tables: Tables) -> DataFrame:
    """Rows of readers of committed records, with what each knows of its partition and `until` when.

    In a fetch session the broker leaves out partitions that have not changed (KIP-227): what it said holds
    until it says more, the client opens a session anew, or the offset has moved on for any reader; at the
    longest until the last Fetch of the connection.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    connection = Window.partitionBy(*CONNECTION)
    later = connection.orderBy(-F.unix_micros("time")).rangeBetween(Window.unboundedPreceding, -1)
    of_one = Window.partitionBy(*CONNECTION, "topic", "partition").orderBy("time", "exchange")
    lists_all = F.coalesce("session_epoch", F.lit(-1)) <= 0
    readers = tables.fetch.where((F.col("isolation_level") == READ_COMMITTED) & ~F.col("is_replica"))
    known = (
        readers.withColumn("anew", F.min(F.when(lists_all, F.col("time"))).over(later))
        .withColumn("last_fetch", F.max("time").over(connection))
        .where(F.col("topic").isNotNull())
        .withColumn("stable", F.last("last_stable_offset", ignorenulls=True).over(of_one))
        .withColumn("high_watermark", F.last("high_watermark", ignorenulls=True).over(of_one))
        .withColumn("next", F.lead("time").over(of_one))
    )
    return known.join(_moves(tables), [*PARTITION, "stable"], "left").withColumn(
        "until", F.least("next", "anew", "moved", "last_fetch")
    )


def _moves(tables: Tables) -> DataFrame:
    """The first time at which a client got a last stable offset beyond this one."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    offsets = tables.fetch.where("last_stable_offset >= 0").groupBy(
        *PARTITION, F.col("last_stable_offset").alias("stable")
    )
    following = Window.partitionBy(*PARTITION).orderBy("stable")
    return offsets.agg(F.min("time").alias("time")).select(
        *PARTITION, "stable", F.lead("time").over(following).alias("moved")
    )


def _beginnings(tables: Tables) -> DataFrame:
    """Batches of transactions: whose they are, by where the broker put them."""
    from pyspark.sql import functions as F

    taken = tables.produce.where("transactional_id IS NOT NULL AND error = 'NONE' AND base_offset >= 0")
    return taken.groupBy(*PARTITION, "base_offset").agg(
        F.max("client_id").alias("producer"), F.max("transactional_id").alias("transactional_id")
    )


DETECTOR = Detector(
    name="held_back_readers",
    title="Readers held back by an open transaction",
    severity="high",
    settings=("transaction.timeout.ms", "isolation.level"),
    advice=(
        "The producer has to commit or abort: look whether it hangs, or was ended without abort. The "
        "coordinator aborts the transaction after transaction.timeout.ms, so shorten that towards the "
        "longest transaction that you need. A transaction that outlasts it hangs: kafka-transactions.sh "
        "find-hanging, and abort. "
        "Readers see each transaction when it ends, so with Flink and the like the checkpoint interval is "
        "their delay."
    ),
    find=find,
    source="KIP-98: read_committed reads up to the last stable offset; KIP-664 on hanging transactions",
    thresholds={
        "held_s": Threshold(
            10,
            "s at the same last stable offset",
            "a hundred times Streams' commit.interval.ms",
        ),
    },
)
