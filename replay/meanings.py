"""The meaning of fields, by mark or name: ids that a cluster gives out anew, and values that differ in every
run.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple

from klamm.decoders.schema import (
    GROUP,
    NODE_ID,
    PARTITION,
    SECRET,
    TOPIC,
    TOPIC_ID,
    Field,
    all_fields,
    members,
    present,
)

Meaning = Literal[
    "node", "topic_id", "producer", "producer_epoch", "member", "member_epoch", "leader_epoch", "session",
    "cluster", "instance", "subscription",
]  # fmt: skip
Values = dict[str, Any]

NIL = bytes(16)
NODES = (
    "broker_id", "leader_id", "controller_id", "replica_id", "preferred_read_replica", "replica_nodes",
    "isr_nodes", "offline_replicas", "eligible_leader_replicas", "last_known_elr", "broker_ids", "replicas",
    "adding_replicas", "removing_replicas",
)  # fmt: skip
MEANINGS: dict[str, Meaning] = {
    **dict.fromkeys(NODES, "node"),
    "producer_id": "producer",
    "v3_and_below_producer_id": "producer",
    "ongoing_txn_producer_id": "producer",
    "producer_id_filters": "producer",
    "producer_epoch": "producer_epoch",
    "v3_and_below_producer_epoch": "producer_epoch",
    "ongoing_txn_producer_epoch": "producer_epoch",
    "member_id": "member",
    "leader": "member",
    "generation_id": "member_epoch",
    "generation_id_or_member_epoch": "member_epoch",
    "member_epoch": "member_epoch",
    "leader_epoch": "leader_epoch",
    "current_leader_epoch": "leader_epoch",
    "last_fetched_epoch": "leader_epoch",
    "committed_leader_epoch": "leader_epoch",
    "session_id": "session",
    "cluster_id": "cluster",
    "client_instance_id": "instance",
    "subscription_id": "subscription",
}

# Epoch -> the id in the same struct to which it belongs.
OWNERS = {
    "ongoing_txn_producer_epoch": "ongoing_txn_producer_id",
    "v3_and_below_producer_epoch": "v3_and_below_producer_id",
    "producer_epoch": "producer_id",
    "generation_id": "member_id",
    "generation_id_or_member_epoch": "member_id",
    "member_epoch": "member_id",
}
# Resources that are named by a node's id: brokers, and their loggers.
NODE_RESOURCES = (4, 8)

# Fields that differ between two equal runs. Messages repeat the error codes; leaders and addresses are the
# cluster's own; aborted transactions are only those that overlap the fetched records.
DIFFERING = frozenset({
    "throttle_time_ms", "log_append_time_ms", "timestamp", "last_timestamp", "transaction_start_time_ms",
    "issue_timestamp", "issue_timestamp_ms", "expiry_timestamp", "expiry_timestamp_ms", "max_timestamp",
    "max_timestamp_ms", "last_fetch_timestamp", "last_caught_up_timestamp", "session_lifetime_ms",
    "error_message", "acknowledge_error_message", "batch_index_error_message", "status_detail",
    "brokers", "node_endpoints", "nodes", "node_id", "host", "port", "rack", "client_host", "log_dir",
    "aborted_transactions", "active_producers", "finalized_features_epoch", "group_epoch",
    "assignment_epoch", "coordinator_epoch", "endpoint_information_epoch", "token_id",
    "partition_size", "total_bytes", "usable_bytes", "replica_directory_id", "replication_factor",
})  # fmt: skip
OFFSETS = frozenset({
    "base_offset", "high_watermark", "last_stable_offset", "log_start_offset", "end_offset", "first_offset",
    "last_offset", "low_watermark", "offset", "old_style_offsets", "committed_offset", "start_offset", "lag",
    "offset_lag", "log_end_offset", "current_txn_start_offset", "last_sequence",
})  # fmt: skip

# The keys of an array's elements, beside topic, partition and group.
KEYS = frozenset({
    "key", "api_key", "name", "feature", "transactional_id", "resource_type", "resource_name", "user",
    "entity_type", "entity_name", "mechanism", "subtopology_id", "member_id", "producer_id",
})  # fmt: skip
IDENTITIES = {TOPIC: "topic", TOPIC_ID: "topic_id", PARTITION: "partition", GROUP: "group"}


def meaning(f: Field) -> Meaning | None:
    """The kind of id that a field, or each element of an array of it, holds."""
    if f.mark == TOPIC_ID:
        return "topic_id"
    if f.mark == NODE_ID:
        return "node"
    return MEANINGS.get(f.name) if not members(f) else None


def means_nothing(kind: Meaning, value: Any) -> bool:
    """No id but what stands for none: -1, empty, null; the epochs at which a member joins and leaves."""
    if value is None or value in ("", NIL):
        return True
    if kind in ("member_epoch", "session", "subscription"):
        return bool(value <= 0)
    return isinstance(value, int) and value < 0


class Shape(NamedTuple):
    """A struct in one version: its fields, and which of them name what it is about."""

    fields: tuple[Field, ...]
    identities: tuple[tuple[str, str], ...]  # (field, "topic", "topic_id", "partition" or "group")
    keys: tuple[Field, ...]
    deep: frozenset[str]  # fields that are, or contain, ids that differ in a new cluster


@cache
def shape(fields: tuple[Field, ...], version: int) -> Shape:
    in_place, tagged = present(fields, version)
    there = (*in_place, *tagged)
    plain = [f for f in there if f.kind not in ("array", "struct")]
    return Shape(
        there,
        tuple((f.name, IDENTITIES[f.mark]) for f in plain if f.mark in IDENTITIES),
        tuple(f for f in plain if f.mark in IDENTITIES or f.name in KEYS),
        frozenset(f.name for f in there if _bears(f, version)),
    )


def _bears(f: Field, version: int) -> bool:
    inner = [one for _, one in all_fields(members(f), version)]
    return any(meaning(one) or one.kind == "records" or one.name == "resource_name" for one in (f, *inner))


def is_compared(f: Field, with_offsets: bool) -> bool:
    return f.name not in DIFFERING and f.mark != SECRET and (with_offsets or f.name not in OFFSETS)
