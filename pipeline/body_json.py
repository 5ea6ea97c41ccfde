"""Bodies as the JSON that `klamm show` has of them, without a walk over all their fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from math import isfinite
from typing import Any

from klamm.decoders import API
from klamm.decoders.body import decode_prefix
from klamm.decoders.schema import UNKNOWN_TAGS, Field, Side, walk
from klamm.rules.json_form import HIDDEN, to_json, uuid_text
from klamm.rules.subjects import at

Change = Callable[[Any], Any]

encode: Callable[[Any], bytes] | None = None
with suppress(ModuleNotFoundError):  # on an executor with nothing but pyarrow
    encode = import_module("msgspec.json").encode
plain = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode
UNKNOWN = f'"{UNKNOWN_TAGS}":'.encode()


@cache
def body_json(key: int, version: int, side: Side) -> Callable[[bytes], bytes | str]:
    """For bodies of this layout. What is returned raises DecodeError."""
    fields = API[key].fields(side)
    changes = [
        (path[:-1], path[-1], change)
        for path, f in walk(fields, version)
        if (change := _change(f)) is not None
    ]

    def slowly(body: bytes) -> str:
        values, _ = decode_prefix(body, key, version, side)
        return plain(to_json(fields, version, values))

    write = encode
    if write is None:
        return slowly

    def quickly(body: bytes) -> bytes | str:
        values, _ = decode_prefix(body, key, version, side)
        for above, name, change in changes:
            for holder in at(values, above):
                value = holder.get(name)
                if value is not None:
                    holder[name] = change(value)
        try:
            told = write(values)
        except UnicodeEncodeError:
            return slowly(body)
        return slowly(body) if UNKNOWN in told else told

    return quickly


def _change(f: Field) -> Change | None:
    """What JSON has in place of a value; None: the value. Bytes become base64 by themselves."""
    if f.mark in HIDDEN:
        return _size_of_text if f.kind == "string" else _size
    kind, is_list = (f.of, True) if f.kind == "array" else (f.kind, False)
    one = TEXTS.get(kind) if isinstance(kind, str) else None
    return partial(_each, one) if one is not None and is_list else one


def _each(change: Change, values: list[Any]) -> list[Any]:
    return list(map(change, values))


def _size(value: bytes) -> dict[str, int]:
    return {"bytes": len(value)}


def _size_of_text(value: str) -> dict[str, int]:
    return {"bytes": len(value.encode("utf-8", "surrogateescape"))}


def _number(value: float) -> float | str:
    return value if isfinite(value) else str(value)


TEXTS: dict[str, Change] = {"uuid": uuid_text, "float64": _number}
