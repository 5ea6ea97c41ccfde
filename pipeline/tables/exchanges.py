"""Requests joined with their responses, by connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from klamm.pipeline.tables.cluster import CONNECTION, software
from klamm.pipeline.tables.reading import KEY, Source, columns, ms

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHARED = ("cluster", "broker", "client", "client_id", "time", "api", "api_key", "version", "correlation_id")
OWN = ("bytes", "fate", "topics", "topic_ids", "groups", "errors", "body")
READ = (*KEY, *SHARED, "kind", "side", "awaits", *OWN)


def exchanges(source: Source, names: DataFrame, bodies: bool, apis: Sequence[str] = ()) -> DataFrame:
    """Of these APIs, or all. Where klamm answered in the broker's place, the answer is klamm's."""
    frames = source.frames(*(name for name in READ if bodies or name != "body")).where("kind = 'frame'")
    if not bodies:
        frames = frames.withColumn("body", F.lit(None).cast("string"))
    if apis:
        frames = frames.where(F.col("api").isin(*apis))
    requests, responses = _side(frames, "request"), _heard(_side(frames, "response"))
    both = requests.join(responses, KEY, "full")
    for name in SHARED:
        both = both.withColumn(name, F.coalesce(f"request_{name}", f"response_{name}"))
    before = Window.partitionBy(*CONNECTION).orderBy("exchange").rowsBetween(Window.unboundedPreceding, -1)
    heard = F.max("response_time").over(before)  # when the answer before it had come
    asked, came = F.col("request_time"), F.col("response_time")
    turn = F.greatest(
        F.coalesce(F.when(heard.isNotNull(), ms(asked, F.least(heard, came))), F.lit(0.0)), F.lit(0.0)
    )
    rows = (
        both.join(software(source), CONNECTION, "left")
        .crossJoin(F.broadcast(names))
        .withColumn("answered", came.isNotNull())
        .withColumn("latency_ms", ms(asked, came))
        .withColumn("turn_ms", F.when(asked.isNotNull() & came.isNotNull(), turn))
        .withColumn("awaits", F.coalesce("request_awaits", F.lit(True)))
        .withColumn("topics", _together("topics", _named("request_topic_ids"), _named("response_topic_ids")))
        .withColumn("groups", _together("groups"))
        .withColumn("errors", F.coalesce("response_errors", F.array()))
        .withColumn("request_body", F.try_parse_json("request_body"))
        .withColumn("response_body", F.try_parse_json("response_body"))
    )
    return columns(rows, "exchanges")


def _side(frames: DataFrame, side: str) -> DataFrame:
    of = frames.where(F.col("side") == side)
    own = [*SHARED, "awaits", *OWN] if side == "request" else [*SHARED, *OWN]
    return of.select(*KEY, *[F.col(name).alias(f"{side}_{name}") for name in own])


def _heard(responses: DataFrame) -> DataFrame:
    """One for each exchange, of those that came."""
    order = Window.partitionBy(*KEY).orderBy(F.col("response_fate") == "withheld", "response_time")
    first = responses.withColumn("place", F.row_number().over(order))
    return first.where((F.col("place") == 1) | F.col("exchange").isNull()).drop("place")


def _named(ids: str) -> Column:
    """Names of topic ids; an id whose name nobody told stays."""
    return F.transform(ids, lambda one: F.coalesce(F.col("names")[one], one))


def _together(what: str, *more: Column) -> Column:
    parts = [F.col(f"request_{what}"), F.col(f"response_{what}"), *more]
    return F.array_distinct(F.concat(*[F.coalesce(part, F.array().cast("array<string>")) for part in parts]))
