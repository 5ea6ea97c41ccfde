"""Readers of committed records that wait, at the first record of a transaction, until it ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

PARTITION = ("cluster", "topic", "partition")
READ_COMMITTED = 1


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The last stable offset stays where it is though there are records behind it. The producer is the one
    whose batch begins at that offset.
    """
    from pyspark.sql import functions as F

    stable = F.col("last_stable_offset")
    waits = (
        tables.fetch.where((F.col("isolation_level") == READ_COMMITTED) & (F.col("error") == "NONE"))
        .where(~F.col("is_replica") & (stable >= 0) & (F.col("high_watermark") > stable))
        .groupBy(*PARTITION, "client_id", stable.alias("base_offset"))
        .agg(F.count(F.lit(1)).alias("count"), F.max("high_watermark").alias("high_watermark"), *measured())
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
    source="KIP-98: read_committed reads up to the last stable offset; KIP-664 on what hangs",
    thresholds={
        "held_s": Threshold(
            10,
            "s at the same last stable offset",
            "a hundred times Streams' commit.interval.ms",
        ),
    },
)
