"""Requests and their responses, by connection."""

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
OWN = ("awaits", "bytes", "fate", "topics", "topic_ids", "groups", "errors")  # of each of the two


def exchanges(source: Source, names: DataFrame, bodies: bool, apis: Sequence[str] = ()) -> DataFrame:
    """Of these APIs, or all. Where klamm answered in the broker's place, the answer is klamm's."""
    rows = _paired(source, bodies, apis)
    came = F.col("response.time")
    has_both = F.col("request.time").isNotNull() & came.isNotNull()
    waited = F.when(F.col("heard").isNotNull(), ms(F.col("time"), F.least("heard", came)))
    turn = F.greatest(F.coalesce(waited, F.lit(0.0)), F.lit(0.0))
    made = {
        "awaits": F.coalesce("request.awaits", F.lit(True)),
        "answered": came.isNotNull(),
        "latency_ms": F.when(has_both, ms(F.col("time"), came)),
        "turn_ms": F.when(has_both, turn),
        "errors": F.coalesce("response.errors", F.array()),
        "topics": _together("topics", _named("request.topic_ids"), _named("response.topic_ids")),
        "groups": _together("groups"),
    }
    for side in ("request", "response"):
        body = F.try_parse_json(f"{side}.body") if bodies else F.lit(None)
        made |= {f"{side}_{name}": F.col(f"{side}.{name}") for name in ("bytes", "fate")}
        made[f"{side}_body"] = body
    connected = rows.join(software(source), CONNECTION, "left").crossJoin(F.broadcast(names))
    return columns(connected.withColumns(made), "exchanges")


def _paired(source: Source, bodies: bool, apis: Sequence[str]) -> DataFrame:
    """A row for each exchange, with `request` and `response`, and `heard`: when the answers before had come.

    Frames are read once, and sorted once within their connection: behind a request comes its response, and
    then what was withheld of such. Frames whose exchange is not known are by themselves.
    """
    own = [*OWN, "body"] if bodies else OWN
    chosen = [("kind", "==", "frame"), *([("api", "in", tuple(apis))] if apis else [])]
    frames = source.frames(*KEY, *SHARED, "side", *own, filters=chosen)
    is_response, withheld = F.col("side") == "response", F.col("fate") == "withheld"
    order = Window.partitionBy(*CONNECTION).orderBy("exchange", is_response, withheld, "time")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    frame = F.struct("exchange", "time", *own)
    behind = F.lead(frame).over(order)
    paired = {
        "is_first": F.coalesce(F.lag("exchange").over(order) != F.col("exchange"), F.lit(True)),
        "request": F.when(~is_response, frame),
        "response": F.when(is_response, frame).when(behind["exchange"] == F.col("exchange"), behind),
        "heard": F.max(F.when(is_response, F.col("time"))).over(before),
    }
    return frames.withColumns(paired).where("is_first")


def _named(ids: str) -> Column:
    """Names of topic ids; an id whose name nobody told stays."""
    return F.transform(ids, lambda one: F.coalesce(F.col("names")[one], one))


def _together(what: str, *more: Column) -> Column:
    parts = [F.col(f"request.{what}"), F.col(f"response.{what}"), *more]
    return F.array_distinct(F.concat(*[F.coalesce(part, F.array().cast("array<string>")) for part in parts]))
