"""The topics, partitions and groups of a frame, one `Part` each, found by their marks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any

from klamm.decoders.schema import (
    GROUP,
    PARTITION,
    TOPIC,
    TOPIC_ID,
    Field,
    all_fields,
    means,
    members,
    present,
)
from klamm.decoders.text import TopicName
from klamm.rules.frame import Part

MARKS = {TOPIC: "topic", TOPIC_ID: "topic_id", PARTITION: "partition", GROUP: "group"}
UNASKED = frozenset({"forgotten_topics_data"})
NIL = bytes(16)
Told = tuple[Field, str]  # a field, and its name in a Part


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
    """Whether the request asks for every topic, by a null, or by an empty list in Metadata 0."""
    for f in _telling(fields, version)[1]:
        if f.kind == "array" and any(m.mark in (TOPIC, TOPIC_ID) for m in members(f)):
            value = values.get(f.name)
            if value is None or (value == [] and version == 0 and f.null.first == 1):
                return True
    return False


def _struct(fields: tuple[Field, ...], version: int, values: dict[str, Any], about: Part) -> Iterator[Part]:
    told, below = _telling(fields, version)
    said = {name: values[f.name] for f, name in told if values.get(f.name) is not None and means(f, values)}
    if said:
        about = {**about, **said}
    covered = False  # by a part below: one that names another topic does not stand for this one
    for f in below:
        value = values.get(f.name)
        if value is not None and means(f, values):
            for part in _below(f, version, value, about):
                covered = covered or all(part.get(name) == each for name, each in said.items())
                yield part
    if said and not covered:
        yield about


@cache
def _telling(fields: tuple[Field, ...], version: int) -> tuple[tuple[Told, ...], tuple[Field, ...]]:
    """Of a struct: its fields with marks, and the fields with such fields in them."""
    in_place, tagged = present(fields, version)
    asked = [f for f in [*in_place, *tagged] if f.name not in UNASKED]
    told = tuple((f, MARKS[f.mark]) for f in asked if f.mark in MARKS and f.kind != "array")
    below = tuple(
        f
        for f in asked
        if f.kind in ("array", "struct")
        and (f.mark in MARKS or any(inner.mark in MARKS for _, inner in all_fields(members(f), version)))
    )
    return told, below


def _below(f: Field, version: int, value: Any, about: Part) -> Iterator[Part]:
    inner = members(f)
    if f.kind == "struct":
        yield from _struct(inner, version, value, about)
    elif inner:
        for each in value:
            yield from _struct(inner, version, each, about)
    else:
        for each in value:
            yield {**about, MARKS[f.mark or ""]: each}


def place_of(part: Part) -> tuple[Hashable, Hashable]:
    """Its topic and partition, to be hashed. The hash of None is not the same in all processes."""
    topic, partition = part.get("topic"), part.get("partition")
    return "" if topic is None else topic, "" if partition is None else partition
