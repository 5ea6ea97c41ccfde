"""Answers that are computed: versions, nodes, coordinators, groups and their offsets, SASL."""

from __future__ import annotations

from collections.abc import Awaitable

from klamm.proxy.session.rewriting.api_versions import unsupported
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.replay.serving.answers import Asked, Broker, Play, Reply
from klamm.replay.serving.matching import Values
from klamm.replay.serving.parts import composed, in_version
from klamm.replay.serving.recording import offered
from klamm.replay.serving.records import (
    UNKNOWN_TOPIC_OR_PARTITION,
    end_of_epoch,
    fetch,
    init_producer_id,
    list_offsets,
    produce,
)

HOST, PORT = "node", 1  # of every node, until its address is put in
NEW_GROUPS = "ConsumerGroupHeartbeat"  # offered only where it was recorded: clients choose by it


def api_versions(broker: Broker, asked: Asked) -> Reply:
    """As the recorded broker answered, without versions that cannot be answered."""
    if asked.version not in asked.api.versions:
        return unsupported()
    answered = broker.recording.last.get(asked.api.key)
    values = {"error_code": 0} if answered is None else in_version(answered, asked.version)
    return {**values, "error_code": 0, "api_keys": offered(broker.recording, PLAYED - {NEW_GROUPS})}


def metadata(broker: Broker, asked: Asked) -> Reply:
    """As recorded; for topics that were never requested together, from their parts; without any, from the
    logs.
    """
    whole = broker.whole(asked)
    if whole is not None and whole.version == asked.version:
        return whole.body
    values = _topics_one_by_one(broker, asked) if whole is None else in_version(whole, asked.version)
    for topic in values["topics"]:
        if topic["name"] and not topic["error_code"] and not any(topic.get("topic_id", b"")):
            topic["topic_id"] = broker.recording.id_of(topic["name"])
    return values


def _topics_one_by_one(broker: Broker, asked: Asked) -> Values:
    recording, topics = broker.recording, asked.values["topics"]
    if topics is None or (asked.version == 0 and not topics):
        topics = [{"name": name, "topic_id": bytes(16)} for name in sorted(recording.topics())]
    request, missing = asked.values | {"topics": topics}, 0
    base = recording.last.get(asked.api.key)
    if topics:
        values, _, missing = composed(
            recording, asked.api, asked.version, request, UNKNOWN_TOPIC_OR_PARTITION
        )
    else:  # only the nodes are asked for
        values = {**({} if base is None else in_version(base, asked.version)), "topics": []}
    if missing:
        values["topics"] = [_of_log(broker, topic) for topic in values["topics"]]
    if base is None:
        values["brokers"] = [_node(key) for key in sorted(nodes(broker)) if key.kind == "broker"]
        values["controller_id"] = values["brokers"][0]["node_id"]
    unknown = [recording.topic(topic) for topic in values["topics"] if topic["error_code"]]
    if missing and unknown:
        broker.lacks(asked, unknown[0])
    return values


def _of_log(broker: Broker, topic: Values) -> Values:
    """A topic that was read or written in the recording, but never described."""
    name = broker.recording.topic(topic)
    indexes = sorted(index for known, index in broker.recording.partitions if known == name)
    if not topic["error_code"] or not indexes:
        return topic
    leader = min(nodes(broker)).node_id
    rows = [
        {"partition_index": i, "leader_id": leader, "replica_nodes": [leader], "isr_nodes": [leader]}
        for i in indexes
    ]
    return topic | {"error_code": 0, "name": name, "partitions": [{"error_code": 0, **row} for row in rows]}


def nodes(broker: Broker) -> list[NodeKey]:
    """The nodes that the recording names, or else one."""
    named = [key for key in broker.recording.nodes if key.kind == "broker"]
    return named or [NodeKey("broker", 1)]


def _node(key: NodeKey) -> Values:
    return {"node_id": key.node_id, "host": HOST, "port": PORT, "rack": None}


def find_coordinator(broker: Broker, asked: Asked) -> Reply:
    """The recorded one; of a key that was not recorded, the first node."""
    kind, first = asked.values.get("key_type", 0), min(nodes(broker)).node_id
    found = []
    for key in asked.values.get("coordinator_keys", [asked.values.get("key", "")]):
        node = NodeKey("broker", broker.recording.coordinators.get((kind, key), first))
        found.append({"key": key, "error_code": 0, "error_message": None, **_node(node)})
    return {**(found[0] if found else {}), "coordinators": found}


def join_group(broker: Broker, asked: Asked) -> Awaitable[Reply]:
    return broker.groups.join(asked.version, asked.values, asked.client_id, asked.alive)


def sync_group(broker: Broker, asked: Asked) -> Awaitable[Reply]:
    return broker.groups.sync(asked.values)


def heartbeat(broker: Broker, asked: Asked) -> Reply:
    return broker.groups.heartbeat(asked.values, asked.alive)


def leave_group(broker: Broker, asked: Asked) -> Reply:
    return broker.groups.leave(asked.values)


def consumer_group_heartbeat(broker: Broker, asked: Asked) -> Reply:
    return broker.consumers.heartbeat(asked.values, asked.client_id, asked.alive)


def offset_commit(broker: Broker, asked: Asked) -> Reply:
    """Kept as long as klamm runs."""
    values = asked.values
    group = values["group_id"]
    generation = values.get("generation_id_or_member_epoch", -1)
    code = broker.groups.commits(group, values.get("member_id", ""), generation)
    topics = []
    for topic in values["topics"]:
        rows = []
        for one in topic["partitions"]:
            if not code:
                epoch = one.get("committed_leader_epoch", -1)
                broker.committed[group, broker.recording.topic(topic), one["partition_index"]] = {
                    "committed_offset": one["committed_offset"],
                    "committed_leader_epoch": epoch,
                    "metadata": one["committed_metadata"] or "",
                }
            rows.append({"partition_index": one["partition_index"], "error_code": code})
        topics.append({**{k: topic[k] for k in ("name", "topic_id") if k in topic}, "partitions": rows})
    return {"topics": topics}


def offset_fetch(broker: Broker, asked: Asked) -> Reply:
    """The offset committed to klamm, else the one of the recorded group before it began."""
    groups = asked.values.get("groups")
    if groups is not None:
        return {"groups": [_committed(broker, group) for group in groups]}
    return _committed(broker, asked.values)


def _committed(broker: Broker, asked: Values) -> Values:
    group, recording = asked["group_id"], broker.recording
    topics = asked["topics"]
    if topics is None:
        by_topic: dict[str, list[int]] = {}
        for name, topic, index in sorted(broker.committed):
            if name == group:
                by_topic.setdefault(topic, []).append(index)
        topics = [{"name": topic, "partition_indexes": found} for topic, found in by_topic.items()]
    answers = []
    for topic in topics:
        name = recording.topic(topic)
        rows = [
            {"partition_index": index, **broker.committed.get((group, name, index), NOTHING), "error_code": 0}
            for index in topic["partition_indexes"]
        ]
        answers.append({"name": name, "topic_id": recording.id_of(name), "partitions": rows})
    return {"group_id": group, "topics": answers, "error_code": 0}


NOTHING = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}


def sasl_handshake(broker: Broker, asked: Asked) -> Reply:
    mechanism = asked.values["mechanism"]
    known = broker.recording.mechanisms
    return {"error_code": 0, "mechanisms": known if mechanism in known else [mechanism, *known]}


def sasl_authenticate(broker: Broker, asked: Asked) -> Reply:
    """Accepts everybody: the recording has no secrets."""
    return {"error_code": 0, "error_message": None, "auth_bytes": b"", "session_lifetime_ms": 0}


PLAYS: dict[str, Play] = {
    "ApiVersions": api_versions,
    "ConsumerGroupHeartbeat": consumer_group_heartbeat,
    "Fetch": fetch,
    "FindCoordinator": find_coordinator,
    "Heartbeat": heartbeat,
    "InitProducerId": init_producer_id,
    "JoinGroup": join_group,
    "LeaveGroup": leave_group,
    "ListOffsets": list_offsets,
    "Metadata": metadata,
    "OffsetCommit": offset_commit,
    "OffsetFetch": offset_fetch,
    "OffsetForLeaderEpoch": end_of_epoch,
    "Produce": produce,
    "SaslAuthenticate": sasl_authenticate,
    "SaslHandshake": sasl_handshake,
    "SyncGroup": sync_group,
}
PLAYED = PLAYS.keys()
AS_RECORDED = {"InitProducerId", "Metadata"}  # of these, as far as the recording goes
