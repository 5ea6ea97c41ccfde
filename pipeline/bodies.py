"""What frames say, for those who ask: as JSON, as typed values, and what they name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from klamm.captures.captured import Captured
from klamm.captures.frames import Framing
from klamm.decoders import DecodeError
from klamm.decoders.error_codes import error_name
from klamm.decoders.payloads import group_payload
from klamm.decoders.schema import RECORDS, Field, marked
from klamm.pipeline.wire_types import PAYLOADS
from klamm.rules.frame import Frame
from klamm.rules.json_form import plain_text, to_json, uuid_text
from klamm.rules.parts import NIL, parts
from klamm.rules.subjects import at, error_codes

ALIKE_BYTES, ALIKE = 512, 4096  # bodies of up to so many bytes are remembered, so many of them
NAMED = ("topics", "topic_ids", "groups", "errors")
Told = dict[str, Any]

dumps: Callable[[Any], str]
try:
    from msgspec.json import encode

    dumps = lambda values: encode(values).decode()  # noqa: E731
except ModuleNotFoundError:  # an executor with nothing but pyarrow
    dumps = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False).encode


class Bodies:
    """`typed`: `body` is a struct and not JSON; `content`: what is asked of records is in the records
    themselves. Each column is a list, None for frames that cannot be read.
    """

    def __init__(self, columns: frozenset[str], typed: bool, content: bool = False) -> None:
        self._named = bool(columns.intersection(NAMED))
        self._body = (_typed if typed else _as_json) if "body" in columns else None
        self._content = content
        self._framing = Framing()
        self._known: dict[tuple[int, int, str, bool, bytes], Told] = {}  # much is said again and again

    def columns(self, rows: list[Captured]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {name: [] for name in NAMED} if self._named else {}
        if self._body is not None:
            found["body"] = []
        for row in rows:
            for name, value in self._row(row).items():
                found[name].append(value)
        return found

    def _row(self, row: Captured) -> Told:
        said: Told = dict.fromkeys(NAMED) if self._named else {}
        if self._body is not None:
            said["body"] = None
        frame = self._framing.frame(row) if row.kind == "frame" else None
        if frame is None:
            return said
        if len(frame.body) > ALIKE_BYTES:
            return self._said(frame, row, said)
        key = frame.api.key, frame.version, frame.side, bool(row.blanks), frame.body
        known = self._known.get(key)
        if known is None:
            if len(self._known) == ALIKE:
                self._known.clear()
            known = self._known[key] = self._said(frame, row, said)
        return known

    def _said(self, frame: Frame, row: Captured, said: Told) -> Told:
        try:
            if self._named:
                said |= named(frame)
            if self._body is not None:
                said["body"] = self._body(frame, self._content and not row.blanks)
        except DecodeError:
            pass
        return said


def named(frame: Frame) -> Told:
    """Raises DecodeError."""
    topics: dict[str, None] = {}
    ids: dict[str, None] = {}
    groups: dict[str, None] = {}
    fields = frame.api.fields(frame.side)
    for part in parts(fields, frame.version, frame.values, _unnamed):
        topic, topic_id, group = part.get("topic"), part.get("topic_id", NIL), part.get("group")
        if topic:
            topics[plain_text(topic)] = None
        elif topic_id != NIL:
            ids[uuid_text(topic_id)] = None
        if group is not None:
            groups[plain_text(group)] = None
    errors: dict[int, int] = {}
    if frame.side == "response":
        for code in error_codes(fields, frame.version, frame.values):
            errors[code] = errors.get(code, 0) + 1
    return {
        "topics": list(topics),
        "topic_ids": list(ids),
        "groups": list(groups),
        "errors": [(code, error_name(code), count) for code, count in errors.items()],
    }


def _unnamed(topic_id: bytes) -> None:
    return None


def _as_json(frame: Frame, content: bool) -> str:
    return dumps(to_json(frame.api.fields(frame.side), frame.version, frame.values))


def _typed(frame: Frame, content: bool) -> dict[str, Any]:
    """Changes the frame's values in place. Raises DecodeError."""
    values = frame.values
    for path in _records(frame.api.fields(frame.side), frame.version):
        from klamm.pipeline.record_batches import told  # needs packages that the rest does not

        for holder in at(values, path[:-1]):
            if holder.get(path[-1]) is not None:
                holder[path[-1]] = told(bytes(holder[path[-1]]), content)
    for holder, name in _payloads(frame, values):
        holder[name] = _assignment(holder[name])
    return values


def _payloads(frame: Frame, values: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    for api, name in PAYLOADS:
        if api == frame.api.name:
            holders = values.get("assignments", ()) if frame.side == "request" else [values]
            yield from ((holder, name) for holder in holders)


def _assignment(data: bytes) -> dict[str, Any] | None:
    try:
        found = group_payload("consumer", "assignment", bytes(data))
    except DecodeError:
        return None
    return None if found is None else found.values


@cache
def _records(fields: tuple[Field, ...], version: int) -> list[tuple[str, ...]]:
    return marked(fields, version, frozenset({RECORDS}))


def as_text(value: Any) -> Any:
    """Typed values again, with strings that Arrow takes."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, list):
        return [as_text(each) for each in value]
    if isinstance(value, dict):
        return {name: as_text(each) for name, each in value.items()}
    return value
