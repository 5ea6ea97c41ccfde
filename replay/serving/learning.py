"""Learns from the exchanges of a capture what a broker has to know."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

from klamm.captures.frames import Framed
from klamm.decoders import DecodeError
from klamm.decoders.body import decode_prefix
from klamm.decoders.schema import Api
from klamm.proxy.session.rewriting.addresses import rewrite
from klamm.proxy.session.rewriting.topology import Kind, NodeKey
from klamm.replay.serving.matching import Values, matter
from klamm.replay.serving.recording import Answered, Place, Recording, part_key
from klamm.rules.errors.answers import names_in
from klamm.rules.errors.places import Node, tree
from klamm.rules.frame import Frame
from klamm.rules.plan import endpoints

OF_ONE_NODE = {"DescribeLogDirs", "ListGroups", "ListTransactions"}  # each node answers for itself
UUID_HEX = re.compile("[0-9a-f]{32}")


def record(framed: Iterable[Framed], played: Container[str] = ()) -> Recording:
    """Read all of it: what is served stands in memory, but for answers of APIs that are `played`."""
    recording = Recording()
    kept: list[tuple[int, Frame, Frame]] = []
    for one in framed:
        request, response = one.request, one.response
        if one.exchange.first.connection is not None:
            recording.clusters.add(one.exchange.first.connection.cluster)
        if request is None or response is None:
            recording.unread[_why(one)] += one.exchange.response is not None
            continue
        try:
            for frame in (request, response):  # as brokers and clients read: bytes left over are ignored
                frame.read = decode_prefix(frame.body, frame.api.key, frame.version, frame.side)[0]
        except DecodeError:
            recording.unread["cannot be decoded"] += 1
            continue
        asked = request.values
        recording.exchanges += 1
        _learn_nodes(recording, response)
        if response.api.name == "Metadata":
            _learn_topics(recording, response.values, response.version)
        if response.version == request.version:
            recording.last[response.api.key] = Answered(response.api, response.version, response.body, asked)
        learn = LEARN.get(response.api.name)
        if learn is not None:
            learn(recording, recording.exchanges, asked, response.values)
        if response.api.name not in played and response.version == request.version:
            kept.append((recording.exchanges, request, response))
    _name_partitions(recording)
    for number, request, response in kept:  # all names of topic ids are known now
        _tell(recording, number, request, response)
    for partition in recording.partitions.values():
        partition.seal()
    return recording


def _why(one: Framed) -> str:
    if one.exchange.request is None:
        return "came without their request"
    kept = all(row is None or row.frame is not None for row in one.exchange)
    return "are of an unknown API or version" if kept else "were kept as their size only"


def _learn_nodes(recording: Recording, response: Frame) -> None:
    where = endpoints(response.api, response.version)
    if where is None:
        return

    def standing(kind: Kind, node_id: int, host: str, port: int) -> tuple[str, int]:
        recording.nodes[NodeKey(kind, node_id)] = host, port
        return host, port

    rewrite(where, response.body, 0, len(response.body), standing)


def _learn_topics(recording: Recording, metadata: Values, version: int) -> None:
    for topic in metadata["topics"]:
        name, topic_id = topic["name"], topic.get("topic_id", b"")
        if name and not topic["error_code"]:
            for partition in topic["partitions"]:
                recording.partitions[name, partition["partition_index"]]  # made, if it is not there
        if name and any(topic_id):
            recording.topic_ids[name], recording.topic_names[topic_id] = topic_id, name


def _name_partitions(recording: Recording) -> None:
    """Names partitions that were known by their topic's id before its name came."""
    for (topic, index), partition in list(recording.partitions.items()):
        name = recording.name_of(bytes.fromhex(topic)) if UUID_HEX.fullmatch(topic) else None
        if name is not None:
            del recording.partitions[topic, index]
            recording.partitions[name, index].take(partition)


def _tell(recording: Recording, number: int, request: Frame, response: Frame) -> None:
    api, version = request.api, request.version
    key = matter(api, version, request.values, recording.name_of)
    recording.keys[api.key][key] = None
    answered = Answered(api, version, response.body, request.values)
    recording.whole.add((api.key, key, None), number, answered)
    if api.name in OF_ONE_NODE:
        recording.whole.add((api.key, key, recording.label_of(request.peer.broker)), number, answered)
    scope = names_in(request.values, api, version)
    for named, values in _elements(recording, api, tree(api.key, version), response.values, scope):
        recording.parts.add(named, number, values)


def _elements(
    recording: Recording, api: Api, node: Node, values: Values, scope: Values
) -> Iterator[tuple[Any, Values]]:
    """The smallest parts of a response that a request names, each by what it is of."""
    for inner in node.inner:
        if not inner.sources or not inner.keys:
            continue
        deeper = any(below.sources and below.keys for below in inner.inner)
        for element in values[inner.path[-1]] or ():
            part = scope | inner.part(element)
            if deeper:
                yield from _elements(recording, api, inner, element, part)
            else:
                yield part_key(recording, api, inner, part), element


def _learn_fetch(recording: Recording, number: int, asked: Values, answer: Values) -> None:
    for topic in answer["responses"]:
        name = recording.topic(topic, "topic")
        for values in topic["partitions"]:
            if values["error_code"]:
                continue
            partition = recording.partitions[name, values["partition_index"]]
            partition.told_end = max(partition.told_end, values["high_watermark"])
            partition.told_start = max(partition.told_start, values.get("log_start_offset", 0))
            for aborted in values.get("aborted_transactions") or ():
                partition.known_aborted.add((aborted["producer_id"], aborted["first_offset"]))
            if values["records"]:
                partition.fetch(values["records"])


def _learn_produce(recording: Recording, number: int, asked: Values, answer: Values) -> None:
    offsets: dict[Place, int] = {}
    for topic in answer["responses"]:
        for values in topic["partition_responses"]:
            place = recording.topic(topic), values["index"]
            recording.produced.add(place, number, values)
            if not values["error_code"]:
                offsets[place] = values["base_offset"]
    for topic in asked["topic_data"]:
        for values in topic["partition_data"]:
            place = recording.topic(topic), values["index"]
            base_offset = offsets.get(place, -1)
            if base_offset >= 0 and values["records"]:
                recording.partitions[place].produce(values["records"], base_offset)


def _learn_coordinators(recording: Recording, number: int, asked: Values, answer: Values) -> None:
    entries = answer.get("coordinators") or [answer | {"key": asked.get("key")}]
    for entry in entries:
        if not entry["error_code"]:
            recording.coordinators[asked.get("key_type", 0), entry["key"]] = entry["node_id"]


def _learn_committed(recording: Recording, number: int, asked: Values, answer: Values) -> None:
    """The first offset that a group got: later ones are those that the recorded clients committed."""
    groups = answer["groups"] if "groups" in answer else [answer | {"group_id": asked["group_id"]}]
    for group in groups:
        for topic in group["topics"]:
            for values in topic["partitions"]:
                if not values["error_code"]:
                    place = group["group_id"], recording.topic(topic), values["partition_index"]
                    recording.committed.setdefault(place, values)


def _learn_offsets(recording: Recording, number: int, asked: Values, answer: Values) -> None:
    times = {
        (topic["name"], values["partition_index"]): values["timestamp"]
        for topic in asked["topics"]
        for values in topic["partitions"]
    }
    for topic in answer["topics"]:
        for values in topic["partitions"]:
            place = topic["name"], values["partition_index"]
            old = values.get("old_style_offsets")
            if old:
                values = values | {"offset": old[0], "timestamp": -1}
            if place in times and not values["error_code"] and "offset" in values:
                recording.offsets.add((*place, times[place]), number, values)


def _learn_members(recording: Recording, number: int, asked: Values, answer: Values) -> None:
    known = recording.members[asked["group_id"]]
    if answer["member_id"] and answer["member_id"] not in known:
        known.append(answer["member_id"])


def _learn_mechanisms(recording: Recording, number: int, asked: Values, answer: Values) -> None:
    recording.mechanisms = answer["mechanisms"] or recording.mechanisms


LEARN = {
    "Fetch": _learn_fetch,
    "FindCoordinator": _learn_coordinators,
    "JoinGroup": _learn_members,
    "ListOffsets": _learn_offsets,
    "OffsetFetch": _learn_committed,
    "Produce": _learn_produce,
    "SaslHandshake": _learn_mechanisms,
}
