"""How long clients use the ids that they give themselves: one after the other, or side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Threshold, measured

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

LASTING = Threshold(5, "s from the first id to the last", "rule of thumb: a start is shorter")
SHARE = Threshold(0.25, "of its ids in use at a time", "rule of thumb: of stable ids, nearly all are")


def in_turn(rows: DataFrame, name: str, begins: Column, thresholds: Mapping[str, float]) -> DataFrame:
    """Clients of whose `ids` that begin in these rows few are in use at a time, on average: no more than
    `share`. `name`: the column of the ids.

    By client: `count` ids, `one` of them, the `span` from the beginning of the first to that of the last,
    the sum of their `lives` (both in us), and what `measured` has.
    """
    from pyspark.sql import functions as F

    ids = (
        rows.groupBy("cluster", "client_id", name)
        .agg(
            F.count_if(begins).alias("begun"),
            (F.unix_micros(F.max("time")) - F.unix_micros(F.min("time"))).alias("life"),
            F.min(F.struct("time", "capture", "connection", "exchange")).alias("row"),
        )
        .where(F.col("begun") > 0)
        .select("cluster", "client_id", name, "life", "row.*")
    )
    return (
        ids.groupBy("cluster", "client_id")
        .agg(
            F.count("*").alias("count"),
            F.sum("life").alias("lives"),
            F.min(name).alias("one"),
            *measured(),
        )
        .withColumn("span", F.unix_micros("last") - F.unix_micros("first"))
        .where((F.col("count") >= thresholds["ids"]) & (F.col("span") >= thresholds["lasting_s"] * 1e6))
        .where(F.col("lives") <= thresholds["share"] * F.col("count") * F.col("span"))
    )


def told(what: str) -> Column:
    """A sentence about a row of `in_turn`. `what`: the kind of id, in the plural."""
    from pyspark.sql import functions as F

    return F.format_string(
        f"had %d {what} in %.0f s, as `%s`, %.1f of them in use at a time",
        "count",
        F.col("span") / 1e6,
        "one",
        F.col("lives") / F.col("span"),
    )
