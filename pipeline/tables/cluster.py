"""The cluster and who is connected to it: names of topics, who led what, connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from klamm.pipeline.tables.reading import KEY, Source, columns, error_text, uuid_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NAMING = ("Metadata", "CreateTopics", "DescribeTopicPartitions")  # answers with names beside ids
NAMES = "struct<topics: array<struct<topic_id: binary, name: string>>>"  # the fields that these share
CONNECTION = ["capture", "connection"]


def topic_names(source: Source) -> DataFrame:
    """One row: a map from topic ids to names."""
    responses = source.bodies(NAMING, "response", body=NAMES)
    named = (
        responses.select(F.explode("body.topics").alias("topic"))
        .select(uuid_text(F.col("topic.topic_id")).alias("topic_id"), F.col("topic.name").alias("name"))
        .dropna()
        .groupBy("topic_id")
        .agg(F.max("name").alias("name"))
    )
    return named.agg(F.map_from_entries(F.collect_list(F.struct("topic_id", "name"))).alias("names"))


def metadata(source: Source) -> DataFrame:
    """The leaders of partitions, as in the answers to clients."""
    asked = source.bodies("Metadata", "request").select(
        *KEY, F.col("body.allow_auto_topic_creation").alias("auto_create")
    )
    responses = source.bodies("Metadata", "response")
    topics = responses.withColumn("t", F.explode("body.topics")).withColumn(
        "p", F.explode_outer("t.partitions")
    )
    leader = F.get(
        F.filter("body.brokers", lambda broker: broker["node_id"] == F.col("p.leader_id")), F.lit(0)
    )
    partition_error = F.coalesce(F.col("p.error_code"), F.lit(0).cast("smallint"))
    code = F.when(F.col("t.error_code") != 0, F.col("t.error_code")).otherwise(partition_error)
    rows = topics.select(
        "*",
        F.col("t.name").alias("topic"),
        uuid_text(F.col("t.topic_id")).alias("topic_id"),
        F.col("p.partition_index").alias("partition"),
        F.col("p.leader_id").alias("leader"),
        F.col("p.leader_epoch").alias("leader_epoch"),
        F.size("p.replica_nodes").alias("replicas"),
        F.size("p.isr_nodes").alias("isr"),
        F.col("p.isr_nodes").alias("in_sync"),
        leader["rack"].alias("leader_rack"),
        F.concat(leader["host"], F.lit(":"), leader["port"].cast("string")).alias("leader_address"),
        error_text(code).alias("error"),
    )
    return columns(rows.join(asked, KEY, "left"), "metadata")


def connections(source: Source) -> DataFrame:
    """By connection, with the contents of its ApiVersions and SASL requests."""
    frames = source.frames(
        "capture", "connection", "cluster", "broker", "client", "client_id", "time", "kind", "side", "bytes",
        "awaits", "text", "lost", "exchange",
    ).where("connection >= 0")  # fmt: skip
    request, response = F.col("side") == "request", F.col("side") == "response"
    frame = F.col("kind") == "frame"
    unanswered = F.count_if(frame & request & F.col("awaits")) - F.count_if(
        frame & response & F.col("exchange").isNotNull()
    )
    by = frames.groupBy(*CONNECTION).agg(
        F.max("cluster").alias("cluster"),
        F.max("broker").alias("broker"),
        F.max("client").alias("client"),
        F.max("client_id").alias("client_id"),
        F.min("time").alias("first"),
        F.max("time").alias("last"),
        F.min(F.when(F.col("kind") == "opened", F.col("time"))).alias("opened"),
        F.max(F.when(F.col("kind") == "closed", F.col("time"))).alias("closed"),
        F.max(F.when(F.col("kind") == "closed", F.col("text"))).alias("why"),
        F.count_if(frame & request).alias("requests"),
        F.count_if(frame & response).alias("responses"),
        F.sum(F.when(frame & request, F.col("bytes")).otherwise(0)).alias("request_bytes"),
        F.sum(F.when(frame & response, F.col("bytes")).otherwise(0)).alias("response_bytes"),
        F.greatest(unanswered, F.lit(0)).alias("unanswered"),
        F.sum("lost").alias("lost"),
    )
    return columns(
        by.join(software(source), CONNECTION, "left").join(_sasl(source), CONNECTION, "left"), "connections"
    )


def software(source: Source) -> DataFrame:
    """By connection: the client library that the client named (KIP-511)."""
    requests = source.bodies("ApiVersions", "request")
    text = F.concat_ws(" ", "body.client_software_name", "body.client_software_version")
    return requests.groupBy(*CONNECTION).agg(F.max(F.when(text != "", text)).alias("software"))


def _sasl(source: Source) -> DataFrame:
    asked = source.bodies("SaslHandshake", "request").select(
        *CONNECTION, F.col("body.mechanism").alias("mechanism")
    )
    codes = [
        source.bodies(api, "response").select(*CONNECTION, F.col("body.error_code").alias("code"))
        for api in ("SaslHandshake", "SaslAuthenticate")
    ]
    failed = codes[0].union(codes[1]).where("code != 0")
    errors = failed.groupBy(*CONNECTION).agg(error_text(F.max("code")).alias("auth_error"))
    mechanisms = asked.groupBy(*CONNECTION).agg(F.max("mechanism").alias("mechanism"))
    return mechanisms.join(errors, CONNECTION, "full")
