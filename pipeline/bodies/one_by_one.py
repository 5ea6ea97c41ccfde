"""Decodes frames one by one: as JSON, as typed values, and their names."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from klamm.captures.captured import Blanks
from klamm.captures.frames import RESPONSE_BYTES, body_of
from klamm.captures.storage.arrow.decoding import column_values
from klamm.captures.streams.cutting import filled
from klamm.decoders import API, DecodeError
from klamm.decoders.body import decode_prefix
from klamm.decoders.compile import UNREADABLE
from klamm.decoders.headers import answered_version
from klamm.decoders.oddity import odd_end
from klamm.decoders.payloads import group_payload
from klamm.decoders.schema import RECORDS, Api, Side, marked
from klamm.decoders.text import valid_text
from klamm.pipeline.bodies.as_json import body_json
from klamm.pipeline.bodies.naming import Named, naming
from klamm.pipeline.bodies.wire_types import HELD, Held
from klamm.pipeline.schemas import BODY, UNDECODABLE
from klamm.rules.subjects import at

ALIKE_BYTES, ALIKE = 512, 4096  # bodies of up to so many bytes are remembered, so many of them
NAMED = Named._fields
STORED = ("kind", "api_key", "api_version", "side", "frame", "blanks")  # of a segment's columns
SENT = {"frame": "forwarded", "blanks": "forwarded_blanks"}  # the columns of what klamm sent in its place
Stored = tuple[str, int, int, Side | None, bytes | None, Blanks]  # a row of them
Read = Callable[[Api, int, Side, bytes, bool], Any]


def rows_of(frames: Any) -> Iterator[Stored]:
    """The rows of a batch with the columns of segments."""
    return zip(*(column_values(frames.column(name)) for name in STORED), strict=True)


class Bodies:
    """`typed`: `body` is a struct and not JSON; `content`: the wanted fields of records are in the records
    themselves. Each column is a list, None for frames that cannot be read.
    """

    def __init__(self, columns: frozenset[str], typed: bool, content: bool = False) -> None:
        self._named = bool(columns.intersection(NAMED))
        self._body: Read | None = (_typed if typed else _json) if BODY in columns else None
        self._content, self._odd = content, UNDECODABLE in columns
        self._columns = [
            *(NAMED if self._named else ()),
            *([BODY] if self._body else ()),
            *([UNDECODABLE] if self._odd else ()),
        ]
        self._unread = [None] * len(self._columns)
        self._known: dict[tuple[int, int, Side, bool, bytes], list[Any]] = {}  # many bodies are equal

    def columns(self, rows: Iterable[Stored]) -> dict[str, list[Any]]:
        with _no_search_for_garbage():
            found = [self._row(*row) for row in rows]
        return dict(zip(self._columns, map(list, zip(*found, strict=True)), strict=True))

    def _row(
        self, kind: str, key: int, version: int, side: Side | None, frame: bytes | None, blanks: Blanks
    ) -> list[Any]:
        api = API.get(key)
        if kind != "frame" or side is None or frame is None or api is None:
            return self._unread
        if side == "response":
            version = answered_version(key, version, frame, RESPONSE_BYTES)
        if version not in api.versions:
            return self._unread
        try:
            body = body_of(filled(frame, blanks) if blanks else frame, key, version, side)
        except ValueError:
            return self._unread
        if body is None:
            return self._unread
        content = self._content and not blanks
        if len(body) > ALIKE_BYTES:
            return self._values(api, version, side, body, content)
        alike = key, version, side, content, body
        known = self._known.get(alike)
        if known is None:
            if len(self._known) == ALIKE:
                self._known.clear()
            known = self._known[alike] = self._values(api, version, side, body, content)
        return known

    def _values(self, api: Api, version: int, side: Side, body: bytes, content: bool) -> list[Any]:
        values: list[Any] = []
        if self._named:
            try:
                values += naming(api.key, version, side)(body)
            except UNREADABLE:
                values += (None,) * len(NAMED)
        if self._body is not None:
            try:
                values.append(self._body(api, version, side, body, content))
            except DecodeError:
                values.append(None)
        if self._odd:
            values.append(odd_end(body, api.key, version, side) or None)
        return values


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """Values have no cycles, and there are so many that Python would look for such again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _json(api: Api, version: int, side: Side, body: bytes, content: bool) -> bytes | str:
    return body_json(api.key, version, side)(body)


def _typed(api: Api, version: int, side: Side, body: bytes, content: bool) -> dict[str, Any]:
    """Raises DecodeError."""
    values, _ = decode_prefix(body, api.key, version, side)
    for path in _records(api.key, version, side):
        # needs packages that the rest does not
        from klamm.pipeline.bodies.record_batches import readable_batches

        for holder in at(values, path[:-1]):
            if holder.get(path[-1]) is not None:
                holder[path[-1]] = readable_batches(bytes(holder[path[-1]]), content)
    for (name, field), held in HELD.items():
        if name == api.name:
            _open(values, field, held, side)
    return values


def _open(values: dict[str, Any], field: str, held: Held, side: Side) -> None:
    """Puts the values of a payload, as far as its bytes go, in the place of its bytes."""
    within = held.lists[side]
    for holder in [values] if within is None else values[within]:
        found = group_payload(values.get("protocol_type"), held.part, bytes(holder[field]))
        holder[field] = None if found is None or held.first not in found.values else found.values


@cache
def _records(key: int, version: int, side: Side) -> list[tuple[str, ...]]:
    return marked(API[key].fields(side), version, frozenset({RECORDS}))


def as_text(value: Any) -> Any:
    """Typed values again, with strings that Arrow takes."""
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, list):
        return [as_text(each) for each in value]
    if isinstance(value, dict):
        return {name: as_text(each) for name, each in value.items()}
    return value
