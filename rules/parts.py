"""What a frame is about: its topics, partitions and groups, one `Part` each, found by their marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from klamm.decoders.schema import GROUP, PARTITION, TOPIC, TOPIC_ID, Field, members, present
from klamm.rules.frame import Part

MARKS = {TOPIC: "topic", TOPIC_ID: "topic_id", PARTITION: "partition", GROUP: "group"}
UNASKED = frozenset({"forgotten_topics_data"})
NIL = bytes(16)

TopicName = Callable[[bytes], str | None]


def parts(
    fields: tuple[Field, ...], version: int, values: dict[str, Any], name_of: TopicName
) -> Iterator[Part]:
    """Each innermost thing that a body names. `topic` has the name also where only the id is on the wire, if
    klamm knows it.
    """
    for part in _struct(fields, version, values, {}):
        topic_id = part.get("topic_id", NIL)
        yield {**part, "topic": name_of(topic_id)} if topic_id != NIL and not part.get("topic") else part


def names_all(fields: tuple[Field, ...], version: int, values: dict[str, Any]) -> bool:
    """Does the request ask for every topic there is, by a null, or by an empty list in Metadata 0?"""
    for f in present(fields, version)[0]:
        if f.kind == "array" and any(m.mark in (TOPIC, TOPIC_ID) for m in members(f)):
            value = values.get(f.name)
            if value is None or (value == [] and version == 0 and f.null.first == 1):
                return True
    return False


def _struct(fields: tuple[Field, ...], version: int, values: dict[str, Any], about: Part) -> Iterator[Part]:
    in_place, tagged = present(fields, version)
    below = []
    told = {}
    for f in [*in_place, *tagged]:
        value = values.get(f.name)
        if value is None or f.name in UNASKED:
            continue
        if f.kind in ("array", "struct"):
            below.append((f, value))
        elif f.mark in MARKS:
            told[MARKS[f.mark]] = value
    if told:
        about = {**about, **told}
    deeper = False
    for f, value in below:
        for part in _below(f, version, value, about):
            deeper = True
            yield part
    if told and not deeper:
        yield about


def _below(f: Field, version: int, value: Any, about: Part) -> Iterator[Part]:
    inner = members(f)
    if f.kind == "struct":
        yield from _struct(inner, version, value, about)
    elif inner:
        for each in value:
            yield from _struct(inner, version, each, about)
    elif f.mark in MARKS:
        for each in value:
            yield {**about, MARKS[f.mark]: each}
