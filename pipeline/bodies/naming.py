"""Picks the names out of a body: its topics, groups and error codes, without reading the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain, repeat
from typing import Any, NamedTuple

from klamm.decoders import layout
from klamm.decoders.compile import Path, pick
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import ERROR, GROUP, TOPIC, TOPIC_ID, Side, all_fields, deciding
from klamm.decoders.text import valid_text
from klamm.rules.json_form import uuid_text
from klamm.rules.parts import NIL, UNASKED

MARKS = (TOPIC, TOPIC_ID, GROUP, ERROR)  # of fields


class Named(NamedTuple):
    """`topic_ids`: of topics whose name is not in the body. `errors`: code but 0, its name, how often."""

    topics: Sequence[str]
    topic_ids: Sequence[str]
    groups: Sequence[str]
    errors: Sequence[tuple[int, str, int]]


NOTHING = Named((), (), (), ())


Flat = Callable[[Any], Iterable[Any]]  # a column of a pick, out of its lists
Taken = list[tuple[int, Flat]]  # where a column is in the pick


class _Places(NamedTuple):
    """`topic_ids` with the column of the names that stand beside them, if there are such."""

    topics: Taken
    topic_ids: list[tuple[int, Flat, int | None]]
    groups: Taken
    errors: Taken


@cache
def naming(key: int, version: int, side: Side) -> Callable[[bytes], Named]:
    """A function for one layout that gives the names in a body. It raises `compile.UNREADABLE`."""
    marks = marks_of(key, version, side)
    if not marks:
        return lambda body: NOTHING
    paths = wanted_of(key, version, side)
    only = {
        paths.index(path): (paths.index(by), value)
        for path, (by, value) in deciders_of(key, version, side).items()
    }
    picked = pick(layout(key, version, side), tuple(paths))
    in_topics, in_ids, in_groups, in_errors = _places(marks)

    def named(body: bytes) -> Named:
        columns = picked(body, 0, len(body))
        return Named(
            _topics(columns, in_topics) if in_topics else (),
            _ids(columns, in_ids) if in_ids else (),
            _groups(columns, in_groups, only) if in_groups else (),
            _codes(columns, in_errors) if in_errors else (),
        )

    return named


def marks_of(key: int, version: int, side: Side) -> dict[Path, tuple[str, int]]:
    """The fields that name something, in wire order: their mark, and the number of arrays on their path."""
    of = layout(key, version, side)
    depths: dict[Path, int] = {(): 0}
    found = {}
    for path, f in all_fields(of.fields, version):
        depths[path] = depths[path[:-1]] + (f.kind == "array")
        if f.mark in MARKS and (f.mark != ERROR or side == "response") and not UNASKED.intersection(path):
            found[path] = f.mark, depths[path]
    return found


@cache
def deciders_of(key: int, version: int, side: Side) -> dict[Path, tuple[Path, int]]:
    """Of fields that name something only where another field has a value: that field, and the value."""
    there = dict(all_fields(layout(key, version, side).fields, version))
    found = ((path, deciding(there, path)) for path in marks_of(key, version, side))
    return {path: by for path, by in found if by is not None}


def wanted_of(key: int, version: int, side: Side) -> list[Path]:
    """The fields to read for the names, those of `marks_of` first."""
    by = (path for path, _ in deciders_of(key, version, side).values())
    return list(dict.fromkeys([*marks_of(key, version, side), *by]))


def _places(marks: dict[Path, tuple[str, int]]) -> _Places:
    found = _Places([], [], [], [])
    names = {path[:-1]: at for at, (path, (mark, _)) in enumerate(marks.items()) if mark == TOPIC}
    for at, (path, (mark, depth)) in enumerate(marks.items()):
        flat = (_one, _each)[depth] if depth < 2 else partial(_inner, depth)
        if mark == TOPIC_ID:
            found.topic_ids.append((at, flat, names.get(path[:-1])))
        else:
            {TOPIC: found.topics, GROUP: found.groups, ERROR: found.errors}[mark].append((at, flat))
    return found


def _one(column: Any) -> Iterable[Any]:
    return () if column is None else (column,)


def _each(column: Any) -> Iterable[Any]:
    return column or ()


def _inner(depth: int, column: Any) -> Iterable[Any]:
    for _ in range(depth - 1):
        column = chain.from_iterable(filter(None, column or ()))
    return column  # type: ignore[no-any-return]


def _topics(columns: tuple[Any, ...], taken: Taken) -> list[str]:
    return _once([name for at, flat in taken for name in flat(columns[at]) if name])


def _groups(columns: tuple[Any, ...], taken: Taken, only: Mapping[int, tuple[int, int]]) -> list[str]:
    """`only`: of a column that names groups only where another one has a value: the other one, the value."""
    there = [(at, flat) for at, flat in taken if at not in only or columns[only[at][0]] == only[at][1]]
    return _once([name for at, flat in there for name in flat(columns[at])])


def _once(names: list[str]) -> list[str]:
    return list(dict.fromkeys(map(valid_text, names))) if names else names


def _ids(columns: tuple[Any, ...], taken: list[tuple[int, Flat, int | None]]) -> list[str]:
    found: dict[bytes, None] = {}
    for at, flat, beside in taken:
        names = repeat(None) if beside is None else flat(columns[beside])
        for one, name in zip(flat(columns[at]), names, strict=False):
            if not name and one is not None and one != NIL:
                found[one] = None
    return list(map(uuid_text, found))


def _codes(columns: tuple[Any, ...], taken: Taken) -> Sequence[tuple[int, str, int]]:
    found = [code for at, flat in taken for code in flat(columns[at]) if code]
    return [(code, error_name(code), count) for code, count in Counter(found).items()] if found else ()
