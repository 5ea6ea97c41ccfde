"""What a body names, picked out of it: its topics, groups and error codes, without reading the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import chain, repeat
from typing import Any, NamedTuple

from klamm.decoders import layout
from klamm.decoders.compile import Path, pick
from klamm.decoders.error_codes import error_name
from klamm.decoders.schema import ERROR, GROUP, TOPIC, TOPIC_ID, Side, walk
from klamm.rules.json_form import plain_text, uuid_text
from klamm.rules.parts import NIL, UNASKED

MARKS = (TOPIC, TOPIC_ID, GROUP, ERROR)  # of fields


class Named(NamedTuple):
    """`topic_ids`: of topics whose name is not in the body. `errors`: code but 0, its name, how often."""

    topics: list[str]
    topic_ids: list[str]
    groups: list[str]
    errors: list[tuple[int, str, int]]


NOTHING = Named([], [], [], [])


class _Places(NamedTuple):
    """Where columns of a pick are, and in how many arrays. Of an id also where the name beside it is, if such
    is known.
    """

    topics: list[tuple[int, int]]
    topic_ids: list[tuple[int, int, int | None]]
    groups: list[tuple[int, int]]
    errors: list[tuple[int, int]]


@cache
def naming(key: int, version: int, side: Side) -> Callable[[bytes], Named]:
    """Of a layout: what a body names. What is returned raises `compile.UNREADABLE`."""
    marks = _marks(key, version, side)
    if not marks:
        return lambda body: NOTHING
    picked, places = pick(layout(key, version, side), tuple(marks)), _places(marks)

    def named(body: bytes) -> Named:
        columns = picked(body, 0, len(body))
        topics = [topic for at, depth in places.topics for topic in _flat(columns[at], depth) if topic]
        groups = [group for at, depth in places.groups for group in _flat(columns[at], depth)]
        codes = [code for at, depth in places.errors for code in _flat(columns[at], depth) if code]
        ids: list[str] = []
        for at, depth, beside in places.topic_ids:
            names = repeat(None) if beside is None else _flat(columns[beside], depth)
            pairs = zip(_flat(columns[at], depth), names, strict=False)
            ids += [uuid_text(one) for one, name in pairs if not name and one is not None and one != NIL]
        return Named(_texts(topics), _texts(ids), _texts(groups), _counted(codes))

    return named


def _marks(key: int, version: int, side: Side) -> dict[Path, tuple[str, int]]:
    """Of fields that name something, in wire order: their mark, and how many arrays are on the way."""
    of = layout(key, version, side)
    depths: dict[Path, int] = {(): 0}
    found = {}
    for path, f in walk(of.fields, version):
        depths[path] = depths[path[:-1]] + (f.kind == "array")
        if f.mark in MARKS and (f.mark != ERROR or side == "response") and not UNASKED.intersection(path):
            found[path] = f.mark, depths[path]
    return found


def _places(marks: dict[Path, tuple[str, int]]) -> _Places:
    found = _Places([], [], [], [])
    names = {path[:-1]: at for at, (path, (mark, _)) in enumerate(marks.items()) if mark == TOPIC}
    for at, (path, (mark, depth)) in enumerate(marks.items()):
        if mark == TOPIC_ID:
            found.topic_ids.append((at, depth, names.get(path[:-1])))
        else:
            {TOPIC: found.topics, GROUP: found.groups, ERROR: found.errors}[mark].append((at, depth))
    return found


def _flat(column: Any, depth: int) -> Iterable[Any]:
    """The values of a column of a pick, out of their lists."""
    if depth == 0:
        return () if column is None else (column,)
    for _ in range(depth - 1):
        column = chain.from_iterable(filter(None, column or ()))
    return column or ()


def _texts(values: list[str]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(map(plain_text, values))) if values else values


def _counted(codes: list[int]) -> list[tuple[int, str, int]]:
    return [(code, error_name(code), count) for code, count in Counter(codes).items()] if codes else []
