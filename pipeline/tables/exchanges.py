"""Requests and their responses, by connection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from klamm.pipeline.schemas import BODY, TABLES, VARIANT
from klamm.pipeline.tables.cluster import CONNECTION, software
from klamm.pipeline.tables.reading import KEY, Names, Source, columns, ms, with_nulls

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ALL = tuple(column.name for column in TABLES["exchanges"].columns)
NAMED = ("topics", "groups", "errors")
BODIES = ("request_body", "response_body")
SHARED = (
    "cluster", "broker", "client", "client_id", "principal", "api", "api_key", "version", "correlation_id",
)  # fmt: skip
SIDES = ("request", "response")
OWN = ("awaits", "bytes", "fate")  # of each of the two


def exchanges(
    source: Source,
    names: Callable[[], Mapping[str, str]],
    wanted: Collection[str] = ALL,
    apis: Sequence[str] = (),
) -> DataFrame:
    """All columns, but null those that are not wanted and cost more than a look at headers. Of these APIs, or
    all. Where klamm answered in the broker's place, the answer is klamm's. `names` is called
    for those of topic ids, if they are needed.
    """
    is_named, has_bodies = (not set(some).isdisjoint(wanted) for some in (NAMED, BODIES))
    more = [*(NAMED if is_named else ()), *((VARIANT, BODY) if has_bodies else ())]
    rows = _paired(source, more, apis, names() if is_named else None)
    asked, came = F.col("request.time"), F.col("response.time")
    has_both = asked.isNotNull() & came.isNotNull()
    waited = F.when(F.col("heard").isNotNull(), ms(asked, F.least("heard", came)))
    made = {
        "time": F.coalesce(asked, came),
        "awaits": F.coalesce("request.awaits", F.lit(True)),
        "answered": came.isNotNull(),
        "latency_ms": F.when(has_both, ms(asked, came)),
        "turn_ms": F.when(has_both, F.greatest(F.coalesce(waited, F.lit(0.0)), F.lit(0.0))),
        **{f"{side}_{name}": F.col(f"{side}.{name}") for side in SIDES for name in ("bytes", "fate")},
    }
    if is_named:
        made["errors"] = F.coalesce("response.errors", F.array())
        made["topics"] = _together("topics")
        made["groups"] = _together("groups")
    if has_bodies:
        made |= {f"{side}_body": _body(F.col(side)) for side in SIDES}
    if "software" in wanted:
        rows = rows.join(software(source), CONNECTION, "left")
    return columns(with_nulls(rows.withColumns(made), "exchanges"), "exchanges")


def _paired(source: Source, more: Sequence[str], apis: Sequence[str], names: Names) -> DataFrame:
    """A row for each exchange, with `request` and `response`, and `heard`: when the answers before had come.

    Where both halves stand in one part of a segment they are paired as they are read. The frames that are
    left are sorted within their connection: behind a request comes its response, and then what was withheld
    of such. Frames whose exchange is not known are by themselves.
    """
    chosen = [("kind", "==", "frame"), *([("api", "in", tuple(apis))] if apis else [])]
    of_each = ("time", *OWN, *more)
    whole, left = source.exchanges([*KEY, *SHARED, "side"], of_each, chosen, names)
    is_response, withheld = F.col("side") == "response", F.col("fate") == "withheld"
    order = Window.partitionBy(*CONNECTION).orderBy("exchange", is_response, withheld, "time")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    frame = F.struct(*of_each)
    is_same = F.lead("exchange").over(order) == F.col("exchange")
    came = F.when(is_response & F.col("exchange").isNotNull(), F.col("time"))
    paired = {
        "is_first": F.coalesce(F.lag("exchange").over(order) != F.col("exchange"), F.lit(True)),
        "request": F.when(~is_response, frame),
        "response": F.when(is_response, frame).when(is_same, F.lead(frame).over(order)),
        "heard": F.greatest("heard", F.max(came).over(before)),
    }
    return whole.unionByName(left.withColumns(paired).where("is_first").select(*whole.columns))


def _together(what: str) -> Column:
    """The names of both halves, each once. Searching duplicates took a fifth of Java's time; they are
    rare.
    """
    one, other = (F.coalesce(f"{side}.{what}", F.array().cast("array<string>")) for side in SIDES)
    is_in_one = (one == other) | (F.size(other) == 0)
    return F.when(is_in_one, one).otherwise(F.array_distinct(F.concat(one, other)))


def _body(frame: Column) -> Column:
    return F.coalesce(frame[VARIANT], F.try_parse_json(frame[BODY]))
