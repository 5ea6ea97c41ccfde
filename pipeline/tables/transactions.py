"""Transactions: who began, joined and ended them."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from klamm.pipeline.tables.reading import HEADER, KEY, Source, answered, columns, error_text, with_nulls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PARTITIONS = "coalesce(get(filter(flatten(transform({}, t -> t.{}.{})), code -> code != 0), 0), 0S)"
OLD = PARTITIONS.format("body.results_by_topic_v3_and_below", "results_by_partition", "partition_error_code")
NEW = PARTITIONS.format(
    "get(body.results_by_transaction, 0).topic_results", "results_by_partition", "partition_error_code"
)
PRODUCER = {name: f"body.{name}" for name in ("transactional_id", "producer_id", "producer_epoch")}
# By API: the columns from its request, and the first error of its response.
STEPS = {
    "InitProducerId": (PRODUCER | {"timeout_ms": "body.transaction_timeout_ms"}, "body.error_code"),
    "AddPartitionsToTxn": (
        {
            name: f"coalesce(get(body.transactions, 0).{name}, body.v3_and_below_{name})"
            for name in ("transactional_id", "producer_id", "producer_epoch")
        },
        f"case when body.error_code != 0 then body.error_code "
        f"when size(body.results_by_transaction) > 0 then {NEW} else {OLD} end",
    ),
    "AddOffsetsToTxn": (PRODUCER, "body.error_code"),
    "TxnOffsetCommit": (PRODUCER, PARTITIONS.format("body.topics", "partitions", "error_code")),
    "EndTxn": (PRODUCER | {"committed": "body.committed"}, "body.error_code"),
}


def transactions(source: Source) -> DataFrame:
    """Their exchanges."""
    return reduce(lambda one, other: one.unionByName(other), [_step(source, api) for api in STEPS])


def _step(source: Source, api: str) -> DataFrame:
    asks, code = STEPS[api]
    asked = source.bodies(api, "request").select(
        *HEADER, *[F.expr(what).alias(name) for name, what in asks.items()]
    )
    given = [F.expr(f"body.{name}").alias(f"given_{name}") for name in ("producer_id", "producer_epoch")]
    responses = source.bodies(api, "response").select(
        *KEY,
        F.col("time").alias("response_time"),
        F.expr(code).alias("code"),
        *(given if api == "InitProducerId" else []),
    )
    rows = answered(asked, responses).withColumn(
        "error", F.when(F.col("answered"), error_text(F.col("code")))
    )
    if api == "InitProducerId":
        for name in ("producer_id", "producer_epoch"):
            rows = rows.withColumn(name, F.coalesce(F.when(F.col("code") == 0, F.col(f"given_{name}")), name))
    rows = rows.withColumn("api", F.lit(api))
    return columns(with_nulls(rows, "transactions"), "transactions")
