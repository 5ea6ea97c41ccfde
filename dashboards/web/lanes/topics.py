"""The names of topic ids: bodies have ids only, klamm tells the names of the exchange beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.lanes.told import Told, Values
from klamm.dashboards.web.lanes.words import identity
from klamm.rules.json_form import uuid_text

MOST = 20_000  # ids
NAMELESS = bytes(16)
METADATA = "(api == Metadata and response_size < 65536)"  # names beside their ids
Listed = dict[str, list[int]]


def with_names(where: str, asked: str) -> str:
    """The filter of a timeline: exchanges for which `where` holds, of those that are asked for, "" for all.
    Names of topics come along with all only: with a condition on the size of an answer none on a field of a
    request can hold.
    """
    return f"({where}) and ({asked})" if asked else f"{METADATA} or {where}"


class Topics:
    """Learns from answers to Metadata, and from exchanges whose names can belong to one id only."""

    def __init__(self) -> None:
        self.names: Recent[bytes, str] = Recent(MOST)

    def read(self, told: Told) -> None:
        """Of an exchange of Metadata."""
        for topic in (told.response or {}).get("topics", ()):
            if topic.get("name") and topic.get("topic_id", NAMELESS) != NAMELESS:
                self.names.put(topic["topic_id"], identity(topic["name"]))

    def learn(self, told: Told) -> None:
        """Of an exchange with ids. Names and ids come in the same order where the bodies have no names."""
        ids: dict[bytes, list[int]] = {}
        for values in (told.request, told.response):
            _collect(values, ids)
        if all(one in self.names.kept for one in ids):
            return
        names = told.one.topics
        if len(names) == len(ids) and not told.request.get("subscribed_topic_names"):
            for one, name in zip(ids, names, strict=True):
                self.names.put(one, identity(name))
            return
        for one, parts in ids.items():
            same = [name for name, others in names.items() if others == parts]
            if parts and len(same) == 1 and list(ids.values()).count(parts) == 1:
                self.names.put(one, identity(same[0]))

    def name(self, topic: Values) -> str:
        """Of an element of a body, whether it has the name or the id; else the id as Kafka prints it."""
        name = topic.get("name") or topic.get("topic")
        if name:
            return identity(name)
        found = topic.get("topic_id", NAMELESS)
        return self.names.get(found) or uuid_text(found)

    def listed(self, topics: Iterable[Values] | None) -> Listed:
        """Partitions by topic, of elements with `partitions` that are numbers or have numbers."""
        found: Listed = {}
        for topic in topics or ():
            found.setdefault(self.name(topic), []).extend(_numbers(topic.get("partitions")))
        return found


def _collect(values: Any, ids: dict[bytes, list[int]]) -> None:
    """Ids in the order of their first appearance, with their partitions."""
    if isinstance(values, list):
        for each in values:
            if isinstance(each, dict | list):
                _collect(each, ids)
    elif isinstance(values, dict):
        found = values.get("topic_id")
        if isinstance(found, bytes) and found != NAMELESS:
            parts = ids.setdefault(found, [])
            parts += [one for one in _numbers(values.get("partitions")) if one not in parts]
            return
        for each in values.values():
            if isinstance(each, dict | list):
                _collect(each, ids)


def _numbers(partitions: Iterable[Any] | None) -> Iterator[int]:
    for one in partitions or ():
        yield one if isinstance(one, int) else one["partition_index"]
