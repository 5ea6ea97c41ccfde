"""Groups: how members live in them, what they commit, and where they begin to read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from klamm.pipeline.tables.partitions import PLACE, named
from klamm.pipeline.tables.reading import HEADER, KEY, Source, answered, columns, error_text, with_nulls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ASSIGNED = "aggregate(body.{}, 0, (n, t) -> n + size(t.partitions))"
_TOPIC_ID = "rtrim('=', translate(base64(t.topic_id), '+/', '-_'))"
NAMED_BY_ID = f"coalesce(names[{_TOPIC_ID}], {_TOPIC_ID})"
PARTITIONS = "flatten(transform(body.{}, t -> transform(t.partitions, p -> concat({}, '-', p))))"
# By API: columns of `groups` from its request, and from its response.
MEMBERSHIP: dict[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "JoinGroup": (
        {
            "group": "body.group_id",
            "asked_member": "body.member_id",
            "instance_id": "body.group_instance_id",
            "session_timeout_ms": "body.session_timeout_ms",
            "rebalance_timeout_ms": "nullif(body.rebalance_timeout_ms, -1)",
            "subscribed": "get(body.protocols, 0).metadata.topics",
            "protocols": "body.protocols.name",
        },
        {
            "code": "body.error_code",
            "given_member": "body.member_id",
            "generation": "if(body.error_code = 0, body.generation_id, null)",
            "leader": "if(body.error_code = 0, body.leader = body.member_id, null)",
            "members": "if(body.leader = body.member_id, size(body.members), null)",
        },
    ),
    "SyncGroup": (
        {
            "group": "body.group_id",
            "asked_member": "body.member_id",
            "instance_id": "body.group_instance_id",
            "generation": "body.generation_id",
        },
        {
            "code": "body.error_code",
            "assigned": ASSIGNED.format("assignment.assigned_partitions"),
            "assignment": PARTITIONS.format("assignment.assigned_partitions", "t.topic"),
        },
    ),
    "Heartbeat": (
        {
            "group": "body.group_id",
            "asked_member": "body.member_id",
            "instance_id": "body.group_instance_id",
            "generation": "body.generation_id",
        },
        {"code": "body.error_code"},
    ),
    "LeaveGroup": (
        {
            "group": "body.group_id",
            "asked_member": "coalesce(nullif(body.member_id, ''), get(body.members, 0).member_id, '')",
            "instance_id": "get(body.members, 0).group_instance_id",
        },
        {"code": "if(body.error_code != 0, body.error_code, coalesce(get(body.members, 0).error_code, 0S))"},
    ),
    "OffsetCommit": (
        {
            "group": "body.group_id",
            "asked_member": "coalesce(body.member_id, '')",
            "instance_id": "body.group_instance_id",
            "generation": "nullif(body.generation_id_or_member_epoch, -1)",
            "committed": "aggregate(body.topics, 0, (n, t) -> n + size(t.partitions))",
        },
        {
            "code": "coalesce(get(filter(flatten(transform(body.topics, t -> t.partitions.error_code)), "
            "code -> code != 0), 0), 0S)"
        },
    ),
    "ConsumerGroupHeartbeat": (
        {
            "group": "body.group_id",
            "asked_member": "body.member_id",
            "instance_id": "body.instance_id",
            "rebalance_timeout_ms": "nullif(body.rebalance_timeout_ms, -1)",
            "asked_generation": "body.member_epoch",
            "subscribed": "body.subscribed_topic_names",
        },
        {
            "code": "body.error_code",
            "given_member": "body.member_id",
            "generation": "if(body.error_code = 0, body.member_epoch, null)",
            "heartbeat_interval_ms": "if(body.error_code = 0, body.heartbeat_interval_ms, null)",
            "assigned": ASSIGNED.format("assignment.topic_partitions"),
            "assignment": PARTITIONS.format("assignment.topic_partitions", NAMED_BY_ID),
        },
    ),
}


def groups(source: Source, names: DataFrame) -> DataFrame:
    """Exchanges by which members live in their groups."""
    found = [_membership(source, api, names) for api in MEMBERSHIP]
    return reduce(lambda one, other: one.unionByName(other), found)


def _membership(source: Source, api: str, names: DataFrame) -> DataFrame:
    asks, tells = MEMBERSHIP[api]
    asked = source.bodies(api, "request").select(
        *HEADER, *[F.expr(what).alias(name) for name, what in asks.items()]
    )
    answers = source.bodies(api, "response")
    if NAMED_BY_ID in tells.get("assignment", ""):
        answers = answers.crossJoin(F.broadcast(names))
    members = answers.select(
        *KEY,
        F.col("time").alias("response_time"),
        F.col("body.throttle_time_ms").alias("throttle_ms"),
        *[F.expr(what).alias(name) for name, what in tells.items()],
    )
    rows = answered(asked, members)
    given = F.col("given_member") if "given_member" in tells else F.lit(None)
    rows = rows.withColumn("member_id", F.coalesce(F.when(given != "", given), "asked_member", F.lit("")))
    if "asked_generation" in asks:
        rows = rows.withColumn("generation", F.coalesce("generation", "asked_generation"))
    rows = rows.withColumn("error", F.when(F.col("answered"), error_text(F.col("code")))).withColumn(
        "api", F.lit(api)
    )
    return columns(with_nulls(rows, "groups"), "groups")


def commits(source: Source, names: DataFrame) -> DataFrame:
    """Commits, by partition."""
    found = []
    for api in ("OffsetCommit", "TxnOffsetCommit"):
        by_id = PLACE.format(name="name") if api == "OffsetCommit" else "t.name"
        asked = source.bodies(api, "request").withColumn("t", F.explode("body.topics"))
        requests = asked.withColumn("p", F.explode("t.partitions")).select(
            *HEADER,
            F.lit(api).alias("api"),
            F.col("body.group_id").alias("group"),
            F.coalesce("body.member_id", F.lit("")).alias("member_id"),
            F.expr(by_id).alias("place"),
            F.col("p.partition_index").alias("partition"),
            F.col("p.committed_offset").alias("offset"),
        )
        answers = source.bodies(api, "response").withColumn("t", F.explode("body.topics"))
        responses = answers.withColumn("p", F.explode("t.partitions")).select(
            *KEY,
            F.expr(by_id).alias("place"),
            F.col("p.partition_index").alias("partition"),
            F.col("time").alias("response_time"),
            error_text(F.col("p.error_code")).alias("error"),
        )
        found.append(answered(requests, responses, ("place", "partition")))
    return columns(named(found[0].unionByName(found[1]), names), "commits")


def offsets(source: Source, names: DataFrame) -> DataFrame:
    """The offsets at which consumers want to begin."""
    return columns(named(_listed(source).unionByName(_fetched(source)), names), "offsets")


def _listed(source: Source) -> DataFrame:
    asked = source.bodies("ListOffsets", "request").withColumn("t", F.explode("body.topics"))
    requests = asked.withColumn("p", F.explode("t.partitions")).select(
        *HEADER,
        F.lit("ListOffsets").alias("api"),
        F.lit(None).cast("string").alias("group"),
        F.col("t.name").alias("place"),
        F.col("p.partition_index").alias("partition"),
        F.col("p.timestamp").alias("wanted"),
    )
    answers = source.bodies("ListOffsets", "response").withColumn("t", F.explode("body.topics"))
    responses = answers.withColumn("p", F.explode("t.partitions")).select(
        *KEY,
        F.col("t.name").alias("place"),
        F.col("p.partition_index").alias("partition"),
        F.col("time").alias("response_time"),
        F.expr("coalesce(get(p.old_style_offsets, 0), p.offset, -1)").alias("offset"),
        error_text(F.col("p.error_code")).alias("error"),
    )
    return answered(requests, responses, ("place", "partition"))


GROUPS = {  # every version's groups as one array: from 8 on there are several in an exchange
    "request": "if(size(body.groups) > 0, transform(body.groups, g -> struct(g.group_id AS group)), "
    "array(struct(body.group_id AS group)))",
    "response": "if(size(body.groups) > 0, "
    "transform(body.groups, g -> struct(g.group_id AS group, g.error_code AS code, g.topics AS topics)), "
    "array(struct(cast(null AS string) AS group, coalesce(body.error_code, 0S) AS code, "
    "transform(body.topics, t -> struct(t.name AS name, cast(null AS binary) AS topic_id, "
    "t.partitions AS partitions)) AS topics)))",
}


def _fetched(source: Source) -> DataFrame:
    """The answer lists the partitions: a request may ask for all that there are."""
    asked = source.bodies("OffsetFetch", "request").withColumn("g", F.explode(F.expr(GROUPS["request"])))
    requests = asked.select(*HEADER, F.col("g.group").alias("asked_group"))
    answers = source.bodies("OffsetFetch", "response").withColumn("g", F.explode(F.expr(GROUPS["response"])))
    topics = answers.withColumn("t", F.explode_outer("g.topics")).withColumn(
        "p", F.explode_outer("t.partitions")
    )
    code = F.when(F.col("g.code") != 0, F.col("g.code")).otherwise(F.coalesce("p.error_code", F.lit(0)))
    responses = topics.select(
        *KEY,
        F.col("g.group").alias("told_group"),
        F.expr(f"if(t is null, null, {PLACE.format(name='name')})").alias("place"),
        F.col("p.partition_index").alias("partition"),
        F.col("time").alias("response_time"),
        F.col("p.committed_offset").alias("offset"),
        error_text(code).alias("error"),
    )
    same = F.col("told_group").isNull() | (F.col("told_group") == F.col("asked_group"))
    rows = answered(requests, responses).where(same).withColumn("group", F.col("asked_group"))
    return rows.select(
        *HEADER, F.lit("OffsetFetch").alias("api"), "group", "place", "partition",
        F.lit(None).cast("bigint").alias("wanted"), "offset", "error", "response_time", "answered",
        "latency_ms",
    )  # fmt: skip
