"""Random values for any layout: every field filled, arrays of up to three elements, strings of any length."""

from __future__ import annotations

from random import Random
from typing import Any

from klamm.decoders.schema import FIXED, Field, members, present

SPECIAL = {"boolean": True, "float64": 0.5}


def values_of(fields: tuple[Field, ...], version: int, random: Random) -> dict[str, Any]:
    in_place, tagged = present(fields, version)
    return {f.name: value_of(f, version, random) for f in (*in_place, *tagged)}


def value_of(f: Field, version: int, random: Random) -> Any:
    if version in f.null and random.random() < 0.2:
        return None
    if f.kind == "array":
        count = random.randrange(4)
        if isinstance(f.of, str):
            return [_scalar(f.of, random) for _ in range(count)]
        return [values_of(f.of, version, random) for _ in range(count)]
    if f.kind == "struct":
        return values_of(members(f), version, random)
    return _scalar(f.kind, random)


def _scalar(kind: str, random: Random) -> Any:
    if kind == "uuid":
        return random.randbytes(16)
    if kind in FIXED:
        return SPECIAL.get(kind, random.randrange(100))
    size = random.choice([0, 1, 20, 126, 127, 128, 300])
    return "k" * size if kind == "string" else random.randbytes(size)
