"""A message as a JSON object: names of the wire table, bytes as base64, uuids as Kafka's tools print them."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

from klamm.cli.decode.frames import REQUEST_HEADER, RESPONSE_HEADER, Message
from klamm.cli.decode.guess import Fit
from klamm.decoders import layout
from klamm.decoders.schema import SECRET, UNKNOWN_TAGS, Field, members
from klamm.decoders.shown.inside import Alone, Inside
from klamm.decoders.shown.records import Opened, batch_object, wrongs
from klamm.decoders.shown.words import hidden
from klamm.decoders.spans import TAGGED, Span, values
from klamm.decoders.text import uuid_text


class _How(NamedTuple):
    secrets: bool
    inside: dict[int, Inside | list[Opened]]  # by where its field begins


def as_object(message: Message, secrets: bool, places: bool) -> dict[str, Any]:
    """The values that were read, of the whole or a part; `places` adds the offset and the size of each
    field.
    """
    piece, version, how = message.piece, message.version, _How(secrets, message.inside)
    header = tuple(REQUEST_HEADER if message.side == "request" else RESPONSE_HEADER)
    body = layout(message.api.key, version, message.side).fields
    found: dict[str, Any] = {
        "offset": piece.first,
        "bytes": piece.end - piece.first,
        "sized": piece.sized,
        "api": message.api.name,
        "api_key": message.api.key,
        "api_version": message.version,
        "side": message.side,
        "header": _struct(values(message.header), header, 1, message.header.parts, how),
        "body": _struct(values(message.body), body, version, message.body.parts, how),
    }
    if piece.missing:
        found["missing_bytes"] = piece.missing
    if message.notes:
        found["notes"] = message.notes
    if places:
        found["places"] = dict(
            [*_places(message.header.parts, "header"), *_places(message.body.parts, "body")]
        )
    unreadable = [{"path": path, "offset": at, "reason": str(why)} for path, at, why in wrongs(message.body)]
    if unreadable:
        found["unreadable"] = unreadable
    failure = message.failure
    if failure is not None:
        part = "body" if failure.api == message.api.name else "header"
        at = failure.offset + (message.body_start if part == "body" else piece.start)
        found["error"] = {"in": part, "path": failure.path, "offset": at, "reason": failure.reason}
    return found


def payload_as_object(data: bytes, alone: Alone, places: bool) -> dict[str, Any]:
    """The same of a payload that is no part of a frame."""
    one = alone.payload
    found = {"bytes": len(data), **_inside(one, _How(False, alone.within))}
    return {**found, "places": dict(_places(one.tree.parts, "values"))} if places else found


def unknown_object(first: int, size: int, reason: str, fits: list[Fit]) -> dict[str, Any]:
    """A frame that could not be recognised."""
    listed = [{"api": fit.api.name, "versions": list(fit.versions), "likely": fit.likely} for fit in fits]
    return {"offset": first, "bytes": size, "error": {"reason": reason}, "fits": listed}


def _struct(
    value: dict[str, Any], fields: tuple[Field, ...], version: int, parts: list[Span], how: _How
) -> dict[str, Any]:
    known = {f.name: f for f in fields if version in f.versions}
    read = {span.name: span for part in parts for span in (part.parts if part.name == TAGGED else [part])}
    return {
        name: [{"tag": tag, "data": _base64(data)} for tag, data in one]
        if name == UNKNOWN_TAGS
        else _value(one, known[name], version, read.get(name), how)
        for name, one in value.items()
    }


def _value(value: Any, f: Field, version: int, span: Span | None, how: _How) -> Any:
    if value is None:
        return None
    if f.mark == SECRET and not how.secrets:
        return hidden(value)
    if span is not None and span.start in how.inside:
        inside = how.inside[span.start]
        if isinstance(inside, list):
            return [batch_object(opened) for opened in inside]
        return _inside(inside, how)
    if f.kind == "struct":
        return _struct(value, members(f), version, span.parts if span else [], how)
    if f.kind != "array":
        return plain(value, f.kind)
    if isinstance(f.of, str):
        return [plain(one, f.of) for one in value]
    elements = [part.parts for part in span.parts] if span else [[]] * len(value)
    return [_struct(one, f.of, version, parts, how) for one, parts in zip(value, elements, strict=True)]


def _inside(one: Inside, how: _How) -> dict[str, Any]:
    found = _struct(values(one.tree), one.layout.fields, one.layout.version, one.tree.parts, how)
    payload = {"payload": one.name, "version": one.layout.version, "values": found}
    return {**payload, "reason": one.reason} if one.reason else payload


def plain(value: Any, kind: str) -> Any:
    """One scalar, as JSON can carry it."""
    if isinstance(value, bytes):
        return uuid_text(value) if kind == "uuid" else _base64(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _places(parts: list[Span], path: str) -> Iterator[tuple[str, list[int]]]:
    for span in parts:
        name = f"{path}{span.name}" if span.name.startswith("[") else f"{path}.{span.name}"
        if span.name != TAGGED and span.start >= 0:
            yield name, [span.start, max(span.end, span.start) - span.start]
        yield from _places(span.parts, path if span.name == TAGGED else name)
