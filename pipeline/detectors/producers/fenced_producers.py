"""Producers that brokers refuse because another took their place, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

FENCED = ("INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED")
WHO = ("cluster", "transactional_id")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """A successor fences once: what counts are more epochs, and who goes on with an old one.

    Those with the same transactional id belong together, whatever their client ids. A producer without one
    is fenced by nobody but itself: it raises its epoch when it gives records up (KIP-360).
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    row = ("time", "capture", "connection", "exchange", "client_id")
    refused = [
        table.where(F.col("error").isin(*FENCED) & F.col("transactional_id").isNotNull()).select(
            *WHO, *row, "producer_id", "producer_epoch"
        )
        for table in (tables.transactions, tables.produce)
    ]
    epochs = (
        refused[0]
        .union(refused[1])
        .groupBy(*WHO, "producer_id", "producer_epoch")
        .agg(F.count("*").alias("errors"), F.min("time").alias("since"), F.max("time").alias("until"),
             F.min(F.struct(*row)).alias("one"))
    )  # fmt: skip
    times = round(thresholds["times"])
    seconds = F.col("since").cast("double")
    before = F.lag(seconds, times - 1).over(Window.partitionBy(*WHO).orderBy("since"))
    repeated = seconds - before <= thresholds["within_s"]
    lasted = F.col("until").cast("double") - seconds >= thresholds["zombie_s"]
    zombie = (F.col("errors") >= thresholds["zombie_errors"]) & lasted
    rows = (
        epochs.withColumns({"repeated": F.coalesce(repeated, F.lit(False)), "zombie": zombie})
        .select("*", "one.*")
        .groupBy(*WHO)
        .agg(
            F.sum("errors").alias("count"),
            F.count("*").alias("epochs"),
            F.count_if("zombie").alias("zombies"),
            F.bool_or("repeated").alias("repeated"),
            F.max("until").alias("until"),
            F.min("client_id").alias("client_id"),
            F.array_sort(F.collect_set("client_id")).alias("client_ids"),
            *measured(),
        )
        .withColumn("last", F.col("until"))
        .where(F.col("repeated") | (F.col("zombies") > 0))
    )
    what = F.format_string(
        "%d epoch(s) fenced in %.0f s, %d requests refused (INVALID_PRODUCER_EPOCH, PRODUCER_FENCED); "
        "client ids: %s%s",
        "epochs",
        F.col("last").cast("double") - F.col("first").cast("double"),
        "count",
        F.concat_ws(", ", F.slice("client_ids", 1, 5)),
        F.when(F.col("zombies") > 0, "; one goes on with an old epoch").otherwise(""),
    )
    return finding(
        rows, what, severity="high", subject=F.concat(F.lit("transactional id "), "transactional_id")
    )


DETECTOR = Detector(
    name="fenced_producers",
    title="Fenced producers",
    severity="high",
    settings=("transactional.id", "transaction.timeout.ms"),
    advice=(
        "Give each instance a transactional.id of its own that stays the same when it starts again, and "
        "let one that is fenced end instead of going on. Where the coordinator aborts transactions that "
        "last too long, raise transaction.timeout.ms or do less in one."
    ),
    find=find,
    source="KIP-98, KIP-360, KIP-588: a new producer with the same transactional.id fences the old one",
    thresholds={
        "times": Threshold(3, "fencings", "rule of thumb: a successor that takes over does it once"),
        "within_s": Threshold(600, "s", "rule of thumb: deployments are further apart"),
        "zombie_errors": Threshold(
            20, "errors of one epoch", "rule of thumb: more than the requests under way"
        ),
        "zombie_s": Threshold(10, "s", "rule of thumb: longer than requests under way take"),
    },
)
