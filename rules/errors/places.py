"""The places of error codes in a response, and the array of the request that each part of it answers.

It follows from the tables: codes are marked ERROR, and what tells one part from another has the same mark, or
the same name, in request and response.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from klamm.decoders import API
from klamm.decoders.failures import UnknownApi
from klamm.decoders.schema import ERROR, GROUP, PARTITION, TOPIC, TOPIC_ID, Api, Field, all_fields, members

Path = tuple[str, ...]
Values = dict[str, Any]
Fields = tuple[Field, ...]
Names = dict[str, str]  # of fields, with their names in a Part

# The keys of a message's parts, with their names in a Part: by mark, or by the field's name.
PART_MARKS = {TOPIC: "topic", TOPIC_ID: "topic_id", PARTITION: "partition", GROUP: "group"}
OWN_NAMES = (
    "resource_type", "resource_name", "transactional_id", "producer_id", "member_id", "group_instance_id",
    "entity", "feature", "user", "key", "id", "log_dir",
)  # fmt: skip
PART_NAMES = {
    **{name: name for name in OWN_NAMES},
    "name": "user",  # where it is no topic's
    "coordinator_keys": "key",
    "transactional_ids": "transactional_id",
    "resource_type_filter": "resource_type",
    "resource_name_filter": "resource_name",
}
# The name for the parts of a place, if it is not that of their last key.
CALLED = {
    "topic_id": "topic", "resource_name": "resource", "transactional_id": "transaction",
    "member_id": "member", "group_instance_id": "member",
}  # fmt: skip
FORGOTTEN = "forgotten_topics_data"  # nothing is asked of these


@dataclass(frozen=True, slots=True)
class Place:
    """One field of a response that holds an error code.

    `path` leads to it: ("responses", "partition_responses", "error_code"); `arrays` are the arrays on the
    way, and `keys` the names of the fields that tell their elements apart: (("name",), ("index",)). `of` is
    what it is the error of: "response", "topic", "partition", "group", "member", "resource", "transaction",
    another key ("user", "log_dir"), or the array's name where elements have no key. `asked`: the request
    names these parts; if not, only the broker knows them.
    """

    path: Path
    arrays: tuple[Path, ...]
    keys: tuple[tuple[str, ...], ...]
    of: str
    asked: bool

    def __str__(self) -> str:
        return ".".join(self.path)


class Step(NamedTuple):
    """An array of a request, with the names of its elements' fields in a Part (`scalar`: of the value
    itself).
    """

    array: str
    scalar: str | None
    names: tuple[tuple[str, str], ...]

    def part(self, element: Any) -> Values:
        if self.scalar is not None:
            return {self.scalar: element}
        return {part: element[name] for name, part in self.names}

    def part_names(self) -> set[str]:
        return {self.scalar} if self.scalar is not None else {part for _, part in self.names}


Steps = tuple[Step, ...]  # of arrays, each in the elements of the one before


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A response (`path` is empty), or an array in it that has error codes in its elements or below.

    `names` are the fields that say what an element is of, with their names in a Part; `keys` those of them
    that the request has too. `sources` are the request's arrays that are answered here, each from the
    element on that the parent node answers.
    """

    path: Path
    codes: tuple[str, ...]
    fields: Fields
    names: Names
    keys: Names
    sources: tuple[Steps, ...]
    inner: tuple[Node, ...]

    def part(self, element: Values) -> Values:
        return {part: element[name] for name, part in self.names.items()}


def part_name(f: Field) -> str | None:
    return (PART_MARKS.get(f.mark or "") if f.only is None else None) or PART_NAMES.get(f.name)


def names_of(fields: Fields) -> Names:
    return {
        f.name: part for f in fields if (part := part_name(f)) and (f.kind != "array" or f.name == "entity")
    }


def in_version(fields: Fields, version: int) -> Fields:
    return tuple(f for f in fields if version in f.versions)


@cache
def tree(key: int, version: int) -> Node:
    """The response of one version as nodes. Raises UnknownApi."""
    api = API[key]
    if version not in api.versions:
        raise UnknownApi(f"{api.name} has versions {api.versions}, not {version}")
    return _node((), in_version(api.response, version), version, in_version(api.request, version), {}, {}, ())


def _node(
    path: Path,
    fields: Fields,
    version: int,
    asked: Fields,
    names: Names,
    keys: Names,
    sources: tuple[Steps, ...],
) -> Node:
    inner = []
    for f in fields:
        if not any(below.mark == ERROR for _, below in all_fields(members(f), version)):
            continue
        parts = in_version(members(f), version)
        own = names_of(parts)
        found = list(_sources(asked, version, frozenset(own.values())))
        told = {name for steps, _ in found for step in steps for name in step.part_names()}
        shared = {name: part for name, part in own.items() if part in told or not found}
        asked_there = found[0][1] if found else ()
        steps_to = tuple(steps for steps, _ in found)
        inner.append(_node((*path, f.name), parts, version, asked_there, own, shared, steps_to))
    codes = tuple(f.name for f in fields if f.mark == ERROR)
    return Node(path, codes, fields, names, keys, sources, tuple(inner))


def _sources(
    asked: Fields, version: int, wanted: frozenset[str], before: Steps = ()
) -> Iterator[tuple[Steps, Fields]]:
    """The arrays that have the wanted names (any, if nothing is wanted), each with the fields of its
    elements.
    """
    for f in asked:
        if f.kind != "array" or f.name == FORGOTTEN:
            continue
        parts = in_version(members(f), version)
        step = Step(f.name, None if parts else part_name(f) or f.name, tuple(names_of(parts).items()))
        steps, here = (*before, step), step.part_names()
        deeper = list(_sources(parts, version, wanted - here, steps)) if wanted - here else []
        if deeper:
            yield from deeper
        elif here & wanted or not wanted:
            yield steps, parts


@cache
def _places(key: int, version: int) -> tuple[Place, ...]:
    found: dict[Path, Place] = {}

    def visit(node: Node, above: tuple[Node, ...]) -> None:
        arrays = (*above, node) if node.path else ()
        paths, keys = tuple(n.path for n in arrays), tuple(tuple(n.keys) for n in arrays)
        of = (*(node.path or ("response",))[-1:], *node.keys.values())[-1]
        for name in node.codes:
            path = (*node.path, name)
            found[path] = Place(path, paths, keys, CALLED.get(of, of), all(n.sources for n in arrays))
        for below in node.inner:
            visit(below, arrays)

    visit(tree(key, version), ())
    wire_order = (path for path, f in all_fields(API[key].response, version) if f.mark == ERROR)
    return tuple(found[path] for path in wire_order)


def places(api: Api | int | str, version: int) -> tuple[Place, ...]:
    """Every place where an error can stand in this response, in wire order. Raises UnknownApi."""
    return _places(key_of(api), version)


def key_of(api: Api | int | str) -> int:
    return api.key if isinstance(api, Api) else API[api].key


def elements(values: Values, steps: Steps, scope: Values) -> Iterator[tuple[Any, Values]]:
    """The elements of these arrays in a request, each with its Part; none where an array is null."""
    step, *rest = steps
    for element in values.get(step.array) or ():
        part = scope | step.part(element)
        if rest:
            yield from elements(element, tuple(rest), part)
        else:
            yield element, part
