"""Share groups: what members acquire, and what they acknowledge (KIP-932)."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from klamm.pipeline.tables.partitions import UUID, named, there
from klamm.pipeline.tables.reading import HEADER, KEY, Source, answered, columns, error_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TYPES = {"accepted": 1, "released": 2, "rejected": 3, "renewed": 4}  # of acknowledgements
RANGE = "b.last_offset - b.first_offset + 1"


def _acknowledged(kind: int) -> str:
    """The records that were acknowledged so: by a type for each, or one for all of a range."""
    one = f"if(get(b.acknowledge_types, 0) = {kind}, {RANGE}, 0L)"
    each = f"cast(size(filter(b.acknowledge_types, kind -> kind = {kind})) AS bigint)"
    return f"if(size(b.acknowledge_types) = 1, {one}, {each})"


def _summed(batches: str, what: str) -> str:
    return f"aggregate({batches}, 0L, (sum, b) -> sum + {what})"


ASKED = {name: _summed("p.acknowledgement_batches", _acknowledged(kind)) for name, kind in TYPES.items()}
AGAIN = f"if(b.delivery_count > 1, {RANGE}, 0L)"
ACQUIRED = {
    "acquired": _summed("p.acquired_records", RANGE),
    "again": _summed("p.acquired_records", AGAIN),
    "delivery_count": "array_max(p.acquired_records.delivery_count)",
}
CODE = "if(p.error_code != 0, p.error_code, p.acknowledge_error_code)"
TOLD = {
    "ShareFetch": {**ACQUIRED, "code": CODE},
    "ShareAcknowledge": {
        "acquired": "0L",
        "again": "0L",
        "delivery_count": "cast(null AS smallint)",
        "code": "p.error_code",
    },
}


def shares(source: Source, names: DataFrame) -> DataFrame:
    """A partition is in the request, the answer, or both: requests name those that they acknowledge, or that
    are new to the session.
    """
    found = [_exchanges(source, api) for api in TOLD]
    return columns(named(reduce(lambda one, other: one.unionByName(other), found), names), "shares")


def _exchanges(source: Source, api: str) -> DataFrame:
    asked = source.bodies(api, "request").select(
        *HEADER,
        F.lit(api).alias("api"),
        F.col("body.group_id").alias("group"),
        F.col("body.member_id").alias("member_id"),
        F.expr(_placed("topics", ASKED)).alias("asked"),
    )
    answers = source.bodies(api, "response").select(
        *KEY,
        F.col("time").alias("response_time"),
        F.col("body.error_code").alias("all_code"),
        F.expr(_placed("responses", TOLD[api])).alias("told"),
    )
    places = "array_distinct(concat({}))".format(
        ", ".join(
            f"coalesce(transform({name}, one -> struct(one.place, one.partition)), array())"
            for name in ("asked", "told")
        )
    )
    rows = answered(asked, answers).withColumn("at", F.explode(F.expr(places)))
    both = rows.withColumn("a", there("asked")).withColumn("b", there("told"))
    code = F.when(F.col("all_code") != 0, F.col("all_code")).otherwise(F.coalesce("b.code", F.lit(0)))
    return both.select(
        "*",
        "at.place",
        "at.partition",
        *[F.coalesce(f"a.{name}", F.lit(0)).alias(name) for name in TYPES],
        *[F.coalesce(f"b.{name}", F.lit(0)).alias(name) for name in ("acquired", "again")],
        "b.delivery_count",
        F.when(F.col("answered"), error_text(code)).alias("error"),
    ).drop("asked", "told", "at", "a", "b", "all_code")


def _placed(topics: str, values: dict[str, str]) -> str:
    """SQL: the partitions of an array of topics as one array of structs with these values."""
    stacked = ", ".join(f"'{name}', {value}" for name, value in values.items())
    return (
        f"flatten(transform(body.{topics}, t -> transform(t.partitions, p -> named_struct("
        f"'place', concat('id:', {UUID}), 'partition', p.partition_index, {stacked}))))"
    )
