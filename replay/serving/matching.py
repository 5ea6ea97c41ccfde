"""Finds the recorded request that equals a new one in all that matters, and the nearest ones.

Two requests are alike when what they ask is the same: topics, partitions, offsets, groups, resources. Who
asks, how long they would wait, and numbers that a broker once gave out do not count; nor does the version, or
the order in an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from klamm.decoders.schema import (
    CLIENT_TEXT,
    RECORDS,
    SECRET,
    TELEMETRY,
    TOPIC,
    TOPIC_ID,
    Api,
    Field,
    default_of,
    members,
)

Values = dict[str, Any]
Key = tuple[tuple[str, Any], ...]  # (field, value), of the fields that matter
Named = Callable[[bytes], str | None]  # the name of a topic id
Answer = TypeVar("Answer")

IMMATERIAL_MARKS = {CLIENT_TEXT, RECORDS, SECRET, TELEMETRY}
IMMATERIAL_ENDS = "timeout_ms", "_epoch", "_bytes", "lifetime_ms"
IMMATERIAL = {
    "acquired_records", "allow_auto_topic_creation", "batch_size", "client_instance_id", "cluster_id",
    "commit_timestamp", "forgotten_topics_data", "generation_id", "generation_id_or_member_epoch",
    "max_records", "max_wait_ms", "member_id", "producer_id", "replica_directory_id", "replica_id",
    "retention_time_ms", "session_id",
}  # fmt: skip


def matter(api: Api, version: int, request: Values, named: Named) -> Key:
    """The parts of a decoded request that matter, the same for every version that has them."""
    if api.name == "Metadata" and version == 0 and not request["topics"]:
        request = {"topics": None}  # as newer versions ask for every topic
    if api.name == "DeleteTopics" and "topic_names" in request:
        request = {"topics": [{"name": name} for name in request["topic_names"]]}
    return _struct(api.request, version, request, named)


def _struct(fields: tuple[Field, ...], version: int, values: Values, named: Named) -> Key:
    given: list[tuple[str, Any]] = []
    topic = None
    for f in fields:
        if f.name not in values or not _material(f):
            continue
        value = values[f.name]
        if f.mark == TOPIC and f.kind == "string":
            topic = value or topic
        elif f.mark == TOPIC_ID and f.kind == "uuid":
            topic = topic or (named(value) or value.hex() if any(value) else None)
        elif (content := _value(f, version, value, named)) != _nothing(f, version):
            given.append((f.name, content))
    if topic:
        given.append(("topic", topic))
    return tuple(sorted(given, key=_first))


def _first(given: tuple[str, Any]) -> str:
    return given[0]


def _material(f: Field) -> bool:
    if f.mark in IMMATERIAL_MARKS or f.name in IMMATERIAL:
        return False
    return not f.name.endswith(IMMATERIAL_ENDS) and not f.name.startswith("include_")


def _nothing(f: Field, version: int) -> Any:
    return () if f.kind in ("array", "struct") else default_of(f, version)


def _value(f: Field, version: int, value: Any, named: Named) -> Any:
    inner = members(f)
    if value is None or (f.kind not in ("array", "struct")):
        return value
    if f.kind == "struct":
        return _struct(inner, version, value, named)
    if inner:
        return tuple(sorted((_struct(inner, version, element, named) for element in value), key=repr))
    if f.mark == TOPIC_ID:
        value = [named(element) or element.hex() for element in value]
    return tuple(sorted(value, key=repr))


class Recorded(NamedTuple, Generic[Answer]):
    """`number` counts the exchanges of the recording from 1."""

    number: int
    answer: Answer


class Story(Generic[Answer]):
    """Answers by key, given in the order of the recording."""

    def __init__(self) -> None:
        self.known: dict[Any, list[Recorded[Answer]]] = {}
        self.given: dict[Any, int] = {}  # how many answers to a key were given

    def add(self, key: Any, number: int, answer: Answer) -> None:
        """Called in the order of the numbers."""
        self.known.setdefault(key, []).append(Recorded(number, answer))

    def tell(self, key: Any, after: int = 0, again: bool = True) -> Recorded[Answer] | None:
        """The first answer not given yet that was recorded after `after`; else the last, if it may come
        `again`.
        """
        found = self.known.get(key, [])
        for index in range(self.given.get(key, 0), len(found)):
            if found[index].number > after:
                self.given[key] = index + 1
                return found[index]
        return found[-1] if found and again else None


def nearest(key: Key, keys: Iterable[Key]) -> Key | None:
    """The one that shares the most with `key`."""
    here = set(_leaves(key))
    return max(keys, key=lambda other: _likeness(here, set(_leaves(other))), default=None)


def _likeness(here: set[str], there: set[str]) -> float:
    return len(here & there) / (len(here | there) or 1)


def _leaves(key: Any, path: str = "") -> Iterator[str]:
    """The leaves of a key, as text: "topics.topic=a"."""
    for name, value in key:
        at = f"{path}.{name}" if path else name
        if not isinstance(value, tuple):
            yield f"{at}={value}"
        elif not value:
            yield f"{at}=[]"
        for element in value if isinstance(value, tuple) else ():
            if isinstance(element, tuple) and element and isinstance(element[0], tuple):
                yield from _leaves(element, at)
            elif isinstance(element, tuple) and len(element) == 2 and isinstance(element[0], str):
                yield from _leaves(value, at)
                break
            else:
                yield f"{at}={element}"


def spoken(key: Key, most: int = 4) -> str:
    """A key for people: its first few leaves."""
    leaves = list(dict.fromkeys(_leaves(key)))
    return ", ".join(leaves[:most]) + (f" and {len(leaves) - most} more" if len(leaves) > most else "")
