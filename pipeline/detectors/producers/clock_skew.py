"""Records whose time is far from the time at which they are sent, where it is the clock and not their age."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, host, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

WHO = ("cluster", "client_id", "host", "topic")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Ahead of klamm's clock; in January 1970, where seconds were given for ms; or behind, at the pace of
    time.

    Old records that are sent again do not follow the clock: their times stand still, or run.
    """
    from pyspark.sql import functions as F

    sent, of_record = F.col("time").cast("double"), F.col("max_timestamp").cast("double")
    ahead_s = of_record - sent
    rows = (
        tables.batches.where((F.col("side") == "request") & F.col("max_timestamp").isNotNull())
        .withColumn("host", host())
        .withColumn("ahead_s", ahead_s)
        .groupBy(*WHO)
        .agg(
            F.count("*").alias("count"),
            F.count_if(F.col("ahead_s") >= thresholds["ahead_s"]).alias("ahead"),
            F.count_if(of_record < thresholds["era_s"]).alias("unborn"),
            F.median("ahead_s").alias("off_s"),
            F.max("ahead_s").alias("nearest_s"),
            F.regr_slope(of_record, sent).alias("pace"),
            F.regr_r2(of_record, sent).alias("fit"),
            (F.max(sent) - F.min(sent)).alias("span_s"),
            *measured(),
        )
    )
    least = F.col("count") * thresholds["share"]
    keeps_pace = (
        (F.col("nearest_s") <= -thresholds["behind_s"])
        & (F.abs(F.col("pace") - 1) <= thresholds["pace"])
        & (F.col("fit") >= thresholds["fit"])
        & (F.col("span_s") >= thresholds["span_s"])
    )
    kind = (
        F.when(F.col("unborn") >= least, "are of 1970: seconds were given for milliseconds")
        .when(F.col("ahead") >= least, F.format_string("are %.0f s in the future", "off_s"))
        .when(keeps_pace, F.format_string("are %.0f s in the past, always the same", -F.col("off_s")))
    )
    found = rows.withColumn("kind", kind).where(
        F.col("kind").isNotNull() & (F.col("count") >= thresholds["batches"])
    )
    what = F.format_string("the records of %d batches from host %s %s", "count", "host", "kind")
    severity = F.when(F.col("unborn") >= least, "high").otherwise("medium")
    return finding(found, what, severity=severity, subject=F.concat(F.lit("topic "), "topic"))


DETECTOR = Detector(
    name="clock_skew",
    title="Clock skew",
    severity="high",
    settings=("message.timestamp.type", "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"),
    advice=(
        "Set the host's clock by NTP, and give timestamps in milliseconds since 1970, UTC. retention.ms, "
        "windows of streams and seeking by time go by them: records of the future stay, records of the "
        "past are deleted early. message.timestamp.type=LogAppendTime takes the broker's clock; "
        "message.timestamp.before.max.ms and after.max.ms refuse what is far off."
    ),
    find=find,
    source="KIP-32 and KIP-937: timestamps of records and their limits",
    thresholds={
        "batches": Threshold(10, "batches", "rule of thumb: more than a try by hand"),
        "share": Threshold(0.5, "of its batches", "rule of thumb: the clock is wrong for all records"),
        "ahead_s": Threshold(300, "s", "rule of thumb: clocks with NTP differ by less than a second"),
        "behind_s": Threshold(
            300, "s", "rule of thumb: longer than delivery.timeout.ms, 120 s, lets records wait"
        ),
        "era_s": Threshold(86_400 * 365, "s since 1970", "the seconds of today as ms are in January 1970"),
        "pace": Threshold(0.2, "away from 1", "rule of thumb: waiting in batches varies by less"),
        "fit": Threshold(0.9, "of 1", "rule of thumb: the same"),
        "span_s": Threshold(5, "s", "rule of thumb: in less time, the pace is unknown"),
    },
)
