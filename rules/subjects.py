"""The topics, groups and errors of an exchange, read from its frames."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from klamm.decoders import DecodeError
from klamm.decoders.schema import ERROR, TRANSACTIONAL_ID, Field, marked
from klamm.decoders.text import valid_text
from klamm.rules.frame import Frame
from klamm.rules.parts import parts

Path = tuple[str, ...]


class Subjects(NamedTuple):
    """`topics`: the partitions of each that are named. `errors`: how often the response has a code but 0."""

    topics: dict[str, list[int]]
    groups: list[str]
    transactional_ids: list[str]
    errors: dict[int, int]


def subjects(request: Frame | None, response: Frame | None) -> Subjects:
    """The errors are those that the client was told. A frame that cannot be read adds nothing."""
    found = Subjects({}, [], [], {})
    for frame in (request, response):
        if frame is not None:
            try:
                _add(frame, found)
            except DecodeError:
                continue
    return found


def _add(frame: Frame, found: Subjects) -> None:
    fields, values = frame.api.fields(frame.side), frame.values
    for part in parts(fields, frame.version, values, frame.names):
        name, partition, group = part.get("topic"), part.get("partition"), part.get("group")
        if name is not None:
            partitions = found.topics.setdefault(valid_text(name), [])
            if partition is not None and partition not in partitions:
                partitions.append(partition)
        if group is not None and valid_text(group) not in found.groups:
            found.groups.append(valid_text(group))
    for one in map(valid_text, transactional_ids(fields, frame.version, values)):
        if one not in found.transactional_ids:
            found.transactional_ids.append(one)
    if frame.side == "response":
        told = frame.told
        for code in error_codes(fields, told.version, told.values):
            found.errors[code] = found.errors.get(code, 0) + 1


def error_codes(fields: tuple[Field, ...], version: int, values: Any) -> list[int]:
    """Every error code of a response's values that is not 0."""
    return [code for path in _paths(fields, version, ERROR) for code in at(values, path) if code]


def transactional_ids(fields: tuple[Field, ...], version: int, values: Any) -> list[str]:
    """Every transactional id that the values name."""
    return [one for path in _paths(fields, version, TRANSACTIONAL_ID) for one in at(values, path)]


@cache
def _paths(fields: tuple[Field, ...], version: int, mark: str) -> list[Path]:
    return marked(fields, version, frozenset({mark}))


def at(values: Any, path: Path) -> Iterator[Any]:
    """The values at a path, in each element of the arrays on it."""
    if isinstance(values, list):
        for each in values:
            yield from at(each, path)
    elif path and values is not None:
        yield from at(values.get(path[0]), path[1:])
    elif values is not None:
        yield values
