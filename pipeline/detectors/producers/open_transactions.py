"""Transactions left open for so long that they are aborted, or nearly; nobody reads past them meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

ENDS = ("EndTxn", "InitProducerId")  # the latter aborts an open transaction
WHO = ("cluster", "transactional_id")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """From the first step that a broker takes to the next EndTxn or InitProducerId, or the end of the
    capture.
    """
    from pyspark.sql import functions as F

    open_s = F.col("until").cast("double") - F.col("first").cast("double")
    timeout_s = F.coalesce("timeout_ms", F.lit(thresholds["timeout_ms"])) / 1000
    seen = tables.some_frames("cluster", "time").groupBy("cluster").agg(F.max("time").alias("seen"))
    opened = (
        _transactions(tables)
        .join(F.broadcast(seen), "cluster")
        .withColumn("until", F.coalesce("ended", "seen"))
        .withColumns({"open_s": open_s, "timeout_s": timeout_s})
        .where(F.col("open_s") >= thresholds["share"] * F.col("timeout_s"))
        .withColumn("time", F.col("first"))
    )
    rows = (
        opened.groupBy("cluster", "client_id")
        .agg(
            F.count("*").alias("count"),
            F.count_if(F.col("open_s") > F.col("timeout_s")).alias("expired"),
            F.max_by(F.struct("open_s", "timeout_s", "transactional_id"), "open_s").alias("longest"),
            F.max("until").alias("until"),
            *measured(),
        )
        .withColumn("last", F.col("until"))
        .where(F.col("count") >= thresholds["transactions"])
    )
    what = F.format_string(
        "%d transactions were open for half of their timeout or more, %d beyond it (these are aborted); "
        "the longest for %.1f s with a timeout of %.1f s (%s)",
        "count",
        "expired",
        "longest.open_s",
        "longest.timeout_s",
        "longest.transactional_id",
    )
    return finding(rows, what, severity=F.when(F.col("expired") > 0, "high").otherwise("medium"))


def _transactions(tables: Tables) -> DataFrame:
    """One row for each: `first`, `ended`, the client and the request that began it, and its timeout."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    step = (*WHO, "client_id", "capture", "connection", "exchange", "time", "error")
    produced = tables.produce.where(F.col("batches") > 0).select(
        *step, F.lit("Produce").alias("api"), F.lit(None).cast("int").alias("timeout_ms")
    )
    steps = tables.transactions.select(*step, "api", "timeout_ms").union(produced)
    in_order = Window.partitionBy(*WHO).orderBy("time", "capture", "connection", "exchange")
    ends = F.col("api").isin(*ENDS)
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = steps.where(F.col("transactional_id").isNotNull()).withColumns(
        {
            "nth": F.count_if(ends).over(so_far) - ends.cast("int"),
            "timeout_ms": F.last("timeout_ms", ignorenulls=True).over(so_far),
        }
    )
    begun: Column = ~ends & F.coalesce(F.col("error") == "NONE", F.lit(False))
    row = F.when(begun, F.struct("time", "client_id", "capture", "connection", "exchange", "timeout_ms"))
    return (
        numbered.groupBy(*WHO, "nth")
        .agg(F.min(row).alias("row"), F.min(F.when(ends, F.col("time"))).alias("ended"))
        .where(F.col("row").isNotNull())
        .select(*WHO, "ended", "row.*", F.col("row.time").alias("first"))
    )


DETECTOR = Detector(
    name="open_transactions",
    title="Transactions left open",
    severity="high",
    settings=("transaction.timeout.ms", "isolation.level"),
    advice=(
        "Commit or abort sooner: begin after slow work is done and not before it, and abort when it fails. "
        "Consumers with isolation.level=read_committed see nothing behind an open transaction. Raise "
        "transaction.timeout.ms only where transactions have to be long (with Flink, longer than between "
        "two checkpoints)."
    ),
    find=find,
    source="KIP-98: the coordinator aborts after transaction.timeout.ms; KIP-664 on hanging transactions",
    thresholds={
        "share": Threshold(
            0.5, "of transaction.timeout.ms", "rule of thumb: one delay more, and it is aborted"
        ),
        "timeout_ms": Threshold(60_000, "ms, where none was seen", "the default of transaction.timeout.ms"),
        "transactions": Threshold(2, "transactions", "a client that is killed leaves one"),
    },
)
