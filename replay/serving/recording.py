"""A capture as a broker knows its cluster: nodes, topics, logs, committed offsets, and what else was said."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

from klamm.decoders import API
from klamm.decoders.body import decode_prefix
from klamm.decoders.schema import Api, Versions
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.replay.serving.log import Partition
from klamm.replay.serving.matching import Key, Story, Values
from klamm.rules.errors.places import Node

# Prefixes of APIs that change the answers of other APIs. Those of producers and groups do not.
CHANGES = "Alter", "Create", "Delete", "Elect", "Incremental", "OffsetDelete", "Unregister", "Update"
ASKERS = {"group_instance_id", "member_id", "producer_id"}
Place = tuple[str, int]  # topic and partition
T = TypeVar("T")


class Answered(NamedTuple):
    """A recorded response: its body, and what it was asked."""

    api: Api
    version: int
    body: bytes
    request: Values


class Recording:
    """`whole` has responses by what was asked, `parts` their elements by what each is of. `at` is the last
    change that was made again: what was recorded after it is preferred.
    """

    def __init__(self) -> None:
        self.at = 0
        self.whole: Story[Answered] = Story()
        self.parts: Story[Values] = Story()
        self.last: dict[int, Answered] = {}  # of each API
        self.keys: dict[int, dict[Key, None]] = defaultdict(dict)  # the requests of each API
        self.partitions: dict[Place, Partition] = defaultdict(Partition)
        self.topic_ids: dict[str, bytes] = {}
        self.topic_names: dict[bytes, str] = {}
        self.nodes: dict[NodeKey, tuple[str, int]] = {}
        self.coordinators: dict[tuple[int, str], int] = {}  # by key type and key
        self.committed: dict[tuple[str, str, int], Values] = {}  # by group, topic and partition
        self.offsets: Story[Values] = Story()  # by topic, partition and timestamp
        self.produced: Story[Values] = Story()  # the answers of partitions
        self.mechanisms: list[str] = []
        self.members: dict[str, list[str]] = defaultdict(list)  # ids that the group gave out
        self.exchanges = 0
        self.unread: Counter[str] = Counter()  # responses that cannot be served, by why
        self.clusters: set[str] = set()

    def tell(self, story: Story[T], key: Any) -> T | None:
        """The next answer of `whole` or `parts`, whose keys begin with the API's."""
        recorded = story.tell(key, self.at)
        if recorded is None:
            return None
        if API[key[0]].name.startswith(CHANGES):
            self.at = max(self.at, recorded.number)
        return recorded.answer

    def name_of(self, topic_id: bytes) -> str | None:
        return self.topic_names.get(topic_id)

    def id_of(self, topic: str) -> bytes:
        """The recorded id, else one that follows from the name."""
        known = self.topic_ids.get(topic)
        if known is None:
            known = self.topic_ids[topic] = uuid.uuid5(uuid.NAMESPACE_OID, topic).bytes
            self.topic_names[known] = topic
        return known

    def topic(self, values: Values, name: str = "name") -> str:
        """The name of the topic of an element, by its name or id; an id without a name, in hex."""
        named, topic_id = values.get(name), values.get("topic_id", b"")
        return str(named or self.name_of(topic_id) or topic_id.hex())

    def label_of(self, broker: str) -> str:
        """A node's id, where only its address was known when it was captured."""
        for key, (host, port) in self.nodes.items():
            if broker == f"{host}:{port}":
                return str(key)
        return broker

    @property
    def unreadable(self) -> int:
        return sum(partition.unreadable for partition in self.partitions.values())

    @property
    def blank_batches(self) -> int:
        return sum(partition.blank for partition in self.partitions.values())

    def topics(self) -> set[str]:
        return {*self.topic_ids, *(topic for topic, _ in self.partitions)}


def part_key(recording: Recording, api: Api, node: Node, part: Values) -> Any:
    """The key of a part, equal for every version and client: a topic counts by its name, the client does not
    count.
    """
    names = {name: value for name, value in part.items() if name not in ASKERS}
    topic_id = names.pop("topic_id", None)
    if topic_id and not names.get("topic"):
        names["topic"] = recording.name_of(topic_id) or topic_id.hex()
    if "entity" in names:  # of a quota: a list
        names["entity"] = repr(names["entity"])
    return api.key, len(node.path), tuple(sorted(names.items()))


def offered(recording: Recording, played: Iterable[str]) -> list[Values]:
    """ApiVersions' ranges: as the broker said, cut to what is played and what the recording answers."""
    served = {API[name].key for name in played} | recording.last.keys()
    answered = recording.last.get(API["ApiVersions"].key)
    ranges = {key: API[key].versions for key in served}
    if answered is not None:
        values = decode_prefix(answered.body, answered.api.key, answered.version, "response")[0]
        recorded = {
            row["api_key"]: Versions(row["min_version"], row["max_version"]) for row in values["api_keys"]
        }
        ranges = {
            key: Versions(max(ours.first, recorded[key].first), min(ours.last, recorded[key].last))
            for key, ours in ranges.items()
            if key in recorded
        }
    return [
        {"api_key": key, "min_version": first, "max_version": last}
        for key, (first, last) in sorted(ranges.items())
        if first <= last
    ]
