"""A client that asks for a topic which is not there, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

UNKNOWN = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID")
KEYS = ("cluster", "client_id", "topic")
COLUMNS = (*KEYS, "error", "capture", "connection", "exchange", "time")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """In answers to Metadata, Produce and Fetch, after the last one in which the client found the topic."""
    from pyspark.sql import functions as F

    rows = tables.metadata.select(*COLUMNS)
    for table in (tables.produce, tables.fetch):
        rows = rows.unionAll(table.where(F.col("error").isin(*UNKNOWN)).select(*COLUMNS))
    rows = rows.where(F.col("topic").isNotNull())
    found = rows.where(~F.col("error").isin(*UNKNOWN)).groupBy(*KEYS).agg(F.max("time").alias("found"))
    found = found.select(*(F.col(name).alias(f"found_{name}") for name in KEYS), "found")
    same = [F.col(name).eqNullSafe(F.col(f"found_{name}")) for name in KEYS]
    since = F.col("found").isNull() | (F.col("time") > F.col("found"))
    lost = (
        rows.where(F.col("error").isin(*UNKNOWN))
        .join(found, same, "left")
        .where(since)
        .groupBy(*KEYS)
        .agg(F.count("*").alias("count"), F.mode("error").alias("error"), *measured())
    )
    span_s = F.col("last").cast("double") - F.col("first").cast("double")
    enough = (
        (F.col("count") >= thresholds["answers"])
        & (span_s >= thresholds["span_s"])
        & (F.col("count") * 60 >= thresholds["a_minute"] * span_s)
    )
    what = F.format_string("got %s %d times in %.0f s, and goes on asking", "error", "count", span_s)
    return finding(lost.where(enough), what, subject=F.concat(F.lit("topic "), "topic"))


DETECTOR = Detector(
    name="unknown_topics",
    title="Unknown topics, in a loop",
    severity="medium",
    settings=("topic.metadata.propagation.max.ms", "metadata.max.age.ms", "retry.backoff.ms"),
    advice=(
        "Correct the topic's name, make the topic, or stop the client if the topic was deleted. Let it treat "
        "UNKNOWN_TOPIC_OR_PARTITION as an error of its configuration after some tries."
    ),
    find=find,
    source="Kafka's documentation of errors: UNKNOWN_TOPIC_OR_PARTITION is retriable, so clients ask on",
    thresholds={
        "answers": Threshold(10, "answers", "rule of thumb: more than while a new topic becomes known"),
        "span_s": Threshold(8, "s", "rule of thumb: brokers tell each other of a new topic in less"),
        "a_minute": Threshold(6, "answers", "rule of thumb: below, it is the refresh of metadata.max.age.ms"),
    },
)
