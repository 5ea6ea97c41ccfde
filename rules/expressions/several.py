"""`topic`, `partition`, `group` and `error`: all that a frame names of them, by the marks of its fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from klamm.decoders.compile import Path
from klamm.decoders.schema import TOPIC, TOPIC_ID
from klamm.rules.expressions.body import UNKNOWN, Body, Looking, spread
from klamm.rules.expressions.failure import Absent
from klamm.rules.expressions.logic import Get
from klamm.rules.expressions.names import MARKED
from klamm.rules.parts import NIL, UNASKED


def values(bodies: Sequence[Body], name: str, at: int) -> Callable[[Looking], list[Any]]:
    """The values of such a name, None for an unknown one. An answer without any is about its request's.
    Raises ExpressionError where no version has one.
    """
    mark = MARKED[name][0]
    marks = (mark, TOPIC_ID) if mark == TOPIC else (mark,)
    body = next((body for body in bodies if any(map(body.ever, marks))), None)
    if body is None or (name == "error" and body.side == "request"):
        raise Absent(f"{bodies[0].api.name} {bodies[0].side}s name no {name}", at)
    columns: dict[Path, list[tuple[Get, int, Any]]] = {}
    deciding: dict[Path, tuple[Get, int]] = {}
    for each in marks:
        for found in body.marked(each):
            if found.path[0] not in UNASKED:
                alone = mark != TOPIC or found.is_array
                beside = found.path if alone else found.path[:-1]  # a name and an id of one struct
                get = body.column(found.path)
                columns.setdefault(beside, []).append((get, found.arrays, found.default))
                if found.by is not None:
                    deciding[beside] = body.column(found.by[0]), found.by[1]

    def made(looking: Looking) -> list[Any]:
        found = looking.named.get(name)
        if found is None:
            found = looking.named[name] = read(looking)
        return found

    def read(looking: Looking) -> list[Any]:
        if body.source == 1 and looking.frame.request is None:
            return [None]
        found: list[Any] = []
        for beside, pair in columns.items():
            if beside in deciding and deciding[beside][0](looking) != deciding[beside][1]:
                continue
            told = [looking.listed(spread(get(looking), arrays, default)) for get, arrays, default in pair]
            for each in zip(*told, strict=True):
                found += _one(each, looking)
        return found if columns else [None]

    return made


def _one(told: tuple[Any, ...], looking: Looking) -> Iterator[Any]:
    """One value; of a topic's name and id the name, else the name that the id stands for."""
    for value in told:
        if value is UNKNOWN:
            yield None
        elif isinstance(value, bytes) and value != NIL:
            yield looking.frame.names(value)
        elif value is None or value == NIL or (value == "" and len(told) > 1):
            continue
        else:
            yield value
        return
