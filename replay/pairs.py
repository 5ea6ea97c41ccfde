"""Two answers to the same request, field beside field; and several answers to parts of it as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

from klamm.decoders.schema import ERROR, RECORDS, TOPIC, TOPIC_ID, Field, members
from klamm.replay.meanings import Values, meaning, shape
from klamm.replay.renaming import NOWHERE, About, Renaming, whose

ABSENT = "absent"  # in place of an element that only one of the two has

Fields = tuple[Field, ...]
Met = tuple[Values | None, Values | None]


class Pair(NamedTuple):
    """A field in both answers, or an element of an array that one of them lacks. `beside`, `about` and
    `owner` (the struct around it, its subject, the owner of an epoch) are as recorded.
    """

    path: str
    field: Field
    recorded: Any
    now: Any
    beside: Values
    about: About
    owner: Any = None


def pairs(
    fields: Fields,
    version: int,
    recorded: Values,
    now: Values,
    renaming: Renaming,
    partial: bool = False,
    outer: About = NOWHERE,
    path: str = "",
) -> Iterator[Pair]:
    """Every field of both, in wire order. Elements of arrays meet by what they are about, else by place.

    `partial`: what is left out of an answer is there, with nothing new to tell (KIP-227).
    """
    about = renaming.about(fields, version, recorded, outer)
    for f in shape(fields, version).fields:
        at = f"{path}.{f.name}" if path else f.name
        left, right, inner = recorded.get(f.name), now.get(f.name), members(f)
        if not inner or left is None or right is None:
            kind = meaning(f)
            owner = None if kind is None else whose(f, kind, recorded, about)
            yield Pair(at, f, left, right, recorded, about, owner)
        elif f.kind == "struct":
            yield from pairs(inner, version, left, right, renaming, partial, about, at)
        else:
            for one, other in _met(inner, version, left, right, renaming, about):
                if partial:
                    one, other = (
                        one or _nothing_of(inner, version, other),
                        other or _nothing_of(inner, version, one),
                    )
                if one is None or other is None:
                    named = _named(inner, version, one), _named(inner, version, other)
                    yield Pair(f"{at}[]", f, *named, recorded, about)
                else:
                    yield from pairs(inner, version, one, other, renaming, partial, about, f"{at}[]")


def _met(
    inner: Fields, version: int, left: list[Values], right: list[Values], renaming: Renaming, about: About
) -> Iterator[Met]:
    keys = shape(inner, version).keys
    if not keys:
        rest, unmet = list(left), list(right)
    else:
        rest, waiting = [], {key_of(keys, one): one for one in right}
        for one in left:
            other = waiting.pop(key_of(keys, renaming.request(inner, version, one, about)), None)
            if other is None:
                rest.append(one)
            else:
                yield one, other
        unmet = list(waiting.values())
    if all(meaning(f) == "member" for f in keys):  # a member that is not known yet is the one in its place
        while rest and unmet:
            yield rest.pop(0), unmet.pop(0)
    for one in rest:
        yield one, None
    for one in unmet:
        yield None, one


def _nothing_of(inner: Fields, version: int, like: Values | None) -> Values | None:
    """An element about the same in which nothing has happened."""
    if like is None:
        return None
    emptied: Values = {
        f.name: [] if f.kind == "array" else 0 if f.mark == ERROR else None
        for f in shape(inner, version).fields
        if f.mark in (ERROR, RECORDS) or (f.kind == "array" and members(f))
    }
    return like | emptied


def key_of(keys: Sequence[Field], element: Values) -> tuple[Any, ...]:
    """The key of an element among others; of a topic its name, where it has both name and id."""
    named = any(f.mark == TOPIC and element.get(f.name) for f in keys)
    return tuple(element.get(f.name) for f in keys if not (named and f.mark == TOPIC_ID))


def _named(inner: Fields, version: int, element: Values | None) -> str:
    if element is None:
        return ABSENT
    parts = [
        str(element[f.name]) for f in shape(inner, version).keys if f.kind != "uuid" and f.name in element
    ]
    return " ".join(parts) or "there"


def together(fields: Fields, version: int, answers: Sequence[Values]) -> Values:
    """Joins the answers to the parts of one request. The last answer about a part holds."""
    return reduce(lambda one, other: _both(fields, version, one, other), answers)


def _both(fields: Fields, version: int, one: Values, other: Values) -> Values:
    of = shape(fields, version)
    arrays = [f for f in of.fields if f.kind == "array" and members(f)]
    if not arrays or any(what == "partition" for _, what in of.identities):
        return other
    out = one | {name: value for name, value in other.items() if value}
    for f in arrays:
        left, right, inner = one.get(f.name), other.get(f.name), members(f)
        if left and right:
            keys = shape(inner, version).keys
            found = {_place(keys, each, -index): each for index, each in enumerate(left)}
            for index, each in enumerate(right, 1):
                place = _place(keys, each, index)
                found[place] = _both(inner, version, found[place], each) if place in found else each
            out[f.name] = list(found.values())
    return out


def _place(keys: Sequence[Field], element: Values, index: int) -> Any:
    return key_of(keys, element) if keys else index
