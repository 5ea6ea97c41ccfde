"""Produce and Fetch by partition, and the record batches in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from klamm.pipeline.tables.reading import HEADER, KEY, Source, answered, columns, error_text

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

PARTITION = ("place", "partition")


def produce(source: Source, names: DataFrame) -> DataFrame:
    asked = _produced(source.bodies("Produce", "request"))
    requests = asked.select(
        *HEADER,
        F.col("body.acks").alias("acks"),
        F.col("body.timeout_ms").alias("timeout_ms"),
        F.col("body.transactional_id").alias("transactional_id"),
        *PARTITION,
        F.coalesce("p.records.bytes", F.lit(0)).alias("bytes"),
        *_counted(F.col("p.records.batches")),
        *[
            F.get("p.records.batches", F.lit(0))[name].alias(name)
            for name in ("codec", "producer_id", "producer_epoch", "base_sequence", "base_timestamp")
        ],
    )
    answers = source.bodies("Produce", "response").withColumn("t", F.explode("body.responses"))
    responses = answers.withColumn("p", F.explode("t.partition_responses")).select(
        *KEY,
        _place("name").alias("place"),
        F.col("p.index").alias("partition"),
        F.col("time").alias("response_time"),
        error_text(F.col("p.error_code")).alias("error"),
        F.col("p.base_offset").alias("base_offset"),
        F.col("body.throttle_time_ms").alias("throttle_ms"),
    )
    return columns(named(answered(requests, responses, PARTITION), names), "produce")


def fetch(source: Source, names: DataFrame) -> DataFrame:
    """A partition is in the request, the answer, or both: sessions leave out unchanged ones."""
    asked, responses = source.bodies("Fetch", "request"), source.bodies("Fetch", "response")
    whole = asked.select(
        *HEADER,
        F.col("body.max_wait_ms").alias("max_wait_ms"),
        F.col("body.min_bytes").alias("min_bytes"),
        F.col("body.session_id").alias("session_id"),
        F.col("body.session_epoch").alias("session_epoch"),
        (F.coalesce("body.replica_state.replica_id", "body.replica_id", F.lit(-1)) >= 0).alias("is_replica"),
        F.col("body.isolation_level").alias("isolation_level"),
        F.col("body.rack_id").alias("rack"),
        _listed("body.topics", "partition", "fetch_offset").alias("asked"),
    )
    answers = responses.select(
        *KEY,
        F.col("time").alias("response_time"),
        F.coalesce("body.error_code", F.lit(0).cast("smallint")).alias("session_code"),
        F.col("body.throttle_time_ms").alias("throttle_ms"),
        F.expr(
            "flatten(transform(body.responses, t -> transform(t.partitions, p -> named_struct("
            f"'place', {PLACE.format(name='topic')}, 'partition', p.partition_index, 'p', p))))"
        ).alias("answers"),
    )
    both = answered(whole, answers)
    empty = F.array().cast("array<struct<place: string, partition: int>>")
    places = [
        F.coalesce(
            F.transform(
                name, lambda one: F.struct(one["place"].alias("place"), one["partition"].alias("partition"))
            ),
            empty,
        )
        for name in ("asked", "answers")
    ]
    rows = both.withColumn("at", F.explode_outer(F.array_distinct(F.concat(*places)))).select(
        "*", "at.place", "at.partition", there("asked").alias("a"), there("answers").alias("b")
    )
    batches = F.col("b.p.records.batches")
    found = rows.select(
        "*",
        F.col("a.fetch_offset").alias("fetch_offset"),
        F.when(F.col("answered"), error_text(F.coalesce("b.p.error_code", F.lit(0)))).alias("error"),
        F.when(F.col("answered"), error_text(F.col("session_code"))).alias("session_error"),
        F.col("b.p.high_watermark").alias("high_watermark"),
        F.col("b.p.last_stable_offset").alias("last_stable_offset"),
        F.col("b.p.log_start_offset").alias("log_start_offset"),
        F.coalesce("b.p.records.bytes", F.lit(0)).alias("bytes"),
        *_counted(batches),
        F.get(batches, F.lit(0))["base_offset"].alias("first_offset"),
        (F.get(batches, F.size(batches) - 1)["last_offset"] + 1).alias("next_offset"),
    )
    return columns(named(found, names), "fetch")


def batches(source: Source, names: DataFrame) -> DataFrame:
    produced = _produced(source.bodies("Produce", "request", content=True)).withColumn(
        "side", F.lit("request")
    )
    responses = source.bodies("Fetch", "response", content=True).withColumn("t", F.explode("body.responses"))
    fetched = responses.withColumn("p", F.explode("t.partitions")).select(
        *HEADER,
        _place("topic").alias("place"),
        F.col("p.partition_index").alias("partition"),
        "p.records",
        F.lit("response").alias("side"),
    )
    both = produced.select(*HEADER, *PARTITION, "p.records", "side").union(fetched)
    rows = (
        both.select("*", F.explode("records.batches").alias("batch")).drop("records").select("*", "batch.*")
    )
    return columns(
        named(rows.withColumn("base_offset", F.coalesce("base_offset", F.lit(0))), names), "batches"
    )


UUID = "rtrim('=', translate(base64(t.topic_id), '+/', '-_'))"
PLACE = "if(coalesce(t.{name}, '') != '', t.{name}, concat('id:', " + UUID + "))"  # a name, or an id


def _place(name: str) -> Column:
    return F.expr(PLACE.format(name=name))


def _produced(requests: DataFrame) -> DataFrame:
    rows = requests.withColumn("t", F.explode("body.topic_data")).withColumn(
        "p", F.explode("t.partition_data")
    )
    return rows.withColumn("place", _place("name")).withColumn("partition", F.col("p.index"))


def _listed(topics: str, partition: str, *values: str) -> Column:
    """All partitions of an array of topics, as one array of structs."""
    stacked = ", ".join(f"'{value}', p.{value}" for value in values)
    return F.expr(
        f"flatten(transform({topics}, t -> transform(t.partitions, p -> named_struct("
        f"'place', {PLACE.format(name='topic')}, 'partition', p.{partition}, {stacked}))))"
    )


def there(where: str) -> Column:
    """The struct of this topic and partition in an array."""
    return F.expr(f"get(filter({where}, one -> one.place = at.place AND one.partition = at.partition), 0)")


def _counted(batches: Column) -> list[Column]:
    zero = F.lit(0).cast("bigint")
    records = F.aggregate(
        batches, zero, lambda total, batch: total + F.coalesce(batch["records"], F.lit(0)).cast("bigint")
    )
    return [
        F.coalesce(F.size(batches), F.lit(0)).alias("batches"),
        F.coalesce(records, zero).alias("records"),
    ]


def named(rows: DataFrame, names: DataFrame) -> DataFrame:
    """`topic` for `place`."""
    topic_id = F.when(F.col("place").startswith("id:"), F.substring("place", 4, 22))
    topic = F.coalesce(F.col("names")[topic_id], topic_id, F.col("place"))
    return rows.crossJoin(F.broadcast(names)).withColumn("topic", topic)
