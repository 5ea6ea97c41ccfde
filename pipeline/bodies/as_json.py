"""Bodies as the JSON that `klamm show` has of them, without a walk over all their fields."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from typing import Any

from klamm.decoders import API
from klamm.decoders.body import decode_prefix
from klamm.decoders.schema import UNKNOWN_TAGS, Side, all_fields
from klamm.rules.json_form import HIDDEN, field_to_json, to_json
from klamm.rules.subjects import at

OTHERWISE = frozenset({"uuid", "float64"})  # kinds that msgspec writes as something else; bytes become base64

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
        (path[:-1], path[-1], partial(field_to_json, f, version))
        for path, f in all_fields(fields, version)
        if f.mark in HIDDEN or {f.kind, f.of} & OTHERWISE
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
            text = write(values)
        except UnicodeEncodeError:
            return slowly(body)
        return slowly(body) if UNKNOWN in text else text

    return quickly
