"""Values as JSON carries them, and back as a person has edited them.

Bytes are base64, uuids as Kafka's tools print them, what is no finite number its name. What is hidden, and
what is large, is told as its size; left as it was told, it stays what it is.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any

from klamm.decoders.schema import RECORDS, SECRET, TELEMETRY, UNKNOWN_TAGS, Field, members
from klamm.decoders.text import uuid_text, valid_text

__all__ = [
    "HIDDEN", "HIDDEN_BYTES", "NotThat", "field_to_json", "from_json", "plain_json", "to_json", "uuid_text",
]  # fmt: skip

HIDDEN = frozenset({SECRET, RECORDS, TELEMETRY})
HIDDEN_BYTES = "bytes"  # the field with their size
NO_NUMBERS = {"nan", "inf", "-inf"}


class NotThat(ValueError):
    """An edited value that is not valid. `path` is as in EncodeError."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


def to_json(
    fields: tuple[Field, ...], version: int, values: Mapping[str, Any], hidden: frozenset[str] = HIDDEN
) -> dict[str, Any]:
    """Decoded values; fields with a mark in `hidden` as {HIDDEN_BYTES: size}."""
    known = _known(fields, version)
    return {
        name: [{"tag": tag, "data": _base64(data)} for tag, data in value]
        if name == UNKNOWN_TAGS
        else field_to_json(known[name], version, value, hidden)
        for name, value in values.items()
    }


def from_json(
    fields: tuple[Field, ...],
    version: int,
    said: Any,
    before: Mapping[str, Any],
    hidden: frozenset[str] = HIDDEN,
) -> dict[str, Any]:
    """Converts the edited form of `to_json(fields, version, before, hidden)` back into values. Raises
    NotThat; whether the layout can hold them is checked by `encode`.
    """
    return _struct(fields, version, said, before, hidden, "")


@cache
def _known(fields: tuple[Field, ...], version: int) -> dict[str, Field]:
    return {f.name: f for f in fields if version in f.versions}


def field_to_json(f: Field, version: int, value: Any, hidden: frozenset[str] = HIDDEN) -> Any:
    """The value of one field."""
    if value is None:
        return None
    if f.mark in hidden:
        return {
            HIDDEN_BYTES: len(value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value)
        }
    if f.kind == "struct":
        return to_json(members(f), version, value, hidden)
    if f.kind != "array":
        return plain_json(value, f.kind)
    if isinstance(f.of, str):
        return [plain_json(one, f.of) for one in value]
    return [to_json(members(f), version, one, hidden) for one in value]


def plain_json(value: Any, kind: str) -> Any:
    """A value of this kind, which is no struct and no array."""
    if isinstance(value, bytes | memoryview):
        return uuid_text(value) if kind == "uuid" else _base64(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return valid_text(value) if isinstance(value, str) else value


def _base64(data: bytes | memoryview) -> str:
    return b64encode(data).decode()


def _struct(
    fields: tuple[Field, ...],
    version: int,
    said: Any,
    before: Mapping[str, Any],
    hidden: frozenset[str],
    path: str,
) -> dict[str, Any]:
    if not isinstance(said, dict):
        raise NotThat(path or "body", "must be an object")
    known = _known(fields, version)
    found: dict[str, Any] = {}
    for name, value in said.items():
        at = f"{path}.{name}" if path else name
        if name == UNKNOWN_TAGS:
            found[name] = _tags(value, at)
        elif name in known:
            found[name] = _value(known[name], version, value, before.get(name), hidden, at)
        else:
            found[name] = value  # encode says that there is no such field, and which there are
    return found


def _value(f: Field, version: int, said: Any, before: Any, hidden: frozenset[str], path: str) -> Any:
    if said is None:
        return None
    if before is not None and said == field_to_json(f, version, before, hidden):
        return before
    if f.kind == "struct":
        return _struct(members(f), version, said, before or {}, hidden, path)
    if f.kind != "array":
        return _scalar(f.kind, said, path)
    if not isinstance(said, list):
        raise NotThat(path, "must be an array")
    if isinstance(f.of, str):
        return [_scalar(f.of, one, f"{path}[{index}]") for index, one in enumerate(said)]
    elements: Sequence[Mapping[str, Any]] = before or ()
    told = [to_json(members(f), version, one, hidden) for one in elements]
    return [
        _struct(members(f), version, one, _origin(one, index, told, elements), hidden, f"{path}[{index}]")
        for index, one in enumerate(said)
    ]


def _origin(
    said: Any, index: int, told: list[dict[str, Any]], elements: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """The element that one was: the same one wherever it stands now, else that in its place."""
    if said in told:
        return elements[told.index(said)]
    return elements[index] if index < len(elements) else {}


def _tags(said: Any, path: str) -> list[tuple[int, bytes]]:
    try:
        return [(one["tag"], b64decode(one["data"], validate=True)) for one in said]
    except (TypeError, KeyError, binascii.Error):
        raise NotThat(path, 'must be [{"tag": 7, "data": "base64"}, ...]') from None


def _scalar(kind: str, said: Any, path: str) -> Any:
    if kind in ("bytes", "records"):
        return _bytes(said, path)
    if kind == "uuid":
        return _uuid(said, path)
    if isinstance(said, bool) != (kind == "boolean"):
        raise NotThat(path, f"{said!r} is no {kind}" if kind != "boolean" else "must be true or false")
    if kind == "float64" and said in NO_NUMBERS:
        return float(said)
    return said


def _bytes(said: Any, path: str) -> bytes:
    if isinstance(said, str):
        try:
            return b64decode(said, validate=True)
        except binascii.Error:
            pass
    raise NotThat(path, "must be base64, or be left as it was")


def _uuid(said: Any, path: str) -> bytes:
    try:
        found = urlsafe_b64decode(said + "==")
    except (TypeError, binascii.Error, ValueError):
        found = b""
    if len(found) != 16:
        raise NotThat(path, "must be a uuid as Kafka prints them, 22 characters of base64")
    return found
