"""Reads the metadata of a segment from JSON as its types, without msgspec: Spark's executors may lack it."""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

hints = cache(get_type_hints)


def typed(value: Any, kind: Any) -> Any:
    """The value as this type; keys that a dataclass lacks are left out. Raises ValueError and TypeError."""
    of, inner = get_origin(kind), get_args(kind)
    if of is UnionType:
        return None if value is None and NoneType in inner else typed(value, inner[0])
    if of is dict:
        keys, values = inner
        return {
            int(key) if keys is int else key: typed(each, values) for key, each in _a(value, dict).items()
        }
    if of is list:
        if inner[0] is int and set(map(type, _a(value, list))) <= {int}:
            return value
        return [typed(each, inner[0]) for each in _a(value, list)]
    if of is tuple:
        return tuple(typed(each, one) for each, one in zip(_a(value, list), inner, strict=True))
    if hasattr(kind, "_fields"):
        return kind(*map(typed, _a(value, list), _types(kind, len(value))))
    if kind in (str, int, bool):
        return _a(value, kind)
    known = hints(kind)
    return kind(**{key: typed(each, known[key]) for key, each in _a(value, dict).items() if key in known})


def _types(kind: Any, count: int) -> list[Any]:
    found = [hints(kind)[name] for name in kind._fields]
    if len(found) != count:
        raise ValueError(f"{count} values in the place of {len(found)}")
    return found


def _a(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"a {type(value).__name__} in the place of a {kind.__name__}")
    return value
