"""The kinds of values, and how a value of one kind is read as another."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal

from klamm.rules.json_form import uuid_text

Kind = Literal["number", "boolean", "text", "bytes", "uuid", "json", "records", "array", "struct", "headers"]

OF_FIELDS: dict[str, Kind] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16", "uint32", "float64"), "number"),
    "boolean": "boolean", "string": "text", "bytes": "bytes", "uuid": "uuid",
    "records": "records", "array": "array", "struct": "struct",
}  # fmt: skip
SAID = {
    "number": "a number", "boolean": "a boolean", "text": "text", "bytes": "bytes", "uuid": "a uuid",
    "json": "JSON", "records": "record batches", "array": "an array", "struct": "a struct",
    "headers": "all headers",
}  # fmt: skip
OF_JSON: dict[type, Kind] = {int: "number", float: "number", bool: "boolean", str: "text"}
ORDERED = ("number", "text", "bytes", "json")


def text_of(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def only(kind: Kind) -> Callable[[Any], Any]:
    """The JSON value, if it is of this kind; else unknown."""

    def checked(value: Any) -> Any:
        return value if OF_JSON.get(type(value)) == kind else None

    return checked


# How a value of one kind is read where another is wanted.
AS: dict[tuple[Kind, Kind], Callable[[Any], Any]] = {
    ("bytes", "text"): text_of,
    ("uuid", "text"): lru_cache(4096)(uuid_text),
    ("json", "text"): only("text"),
    ("json", "number"): only("number"),
    ("json", "boolean"): only("boolean"),
}


def meeting(one: Kind, other: Kind) -> Kind | None:
    """The kind as which two values are compared; None: they cannot be compared."""
    if one == other:
        return None if one in ("array", "struct", "records", "headers") else one
    if (one, other) in AS:
        return other
    if (other, one) in AS:
        return one
    return "text" if {one, other} < {"bytes", "uuid", "json"} else None
