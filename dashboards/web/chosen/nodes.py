"""A body as a tree for the page: each field with its place in the bytes, and what stands inside fields."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from msgspec import Struct, field

from klamm.decoders.schema import ERROR, TOPIC_ID
from klamm.decoders.shown.records import Entry, Opened, Wrong
from klamm.decoders.shown.words import content, meaning, moment
from klamm.decoders.spans import Span
from klamm.decoders.text import TopicName, uuid_text
from klamm.settings.printable import printable

NODES = 20_000  # of one tree; a page takes a second for so many
TEXT = 500  # characters of a value


class Node(Struct, frozen=True, omit_defaults=True):
    """A field at `start` to `end` of the body; `end` is -1 where reading failed inside it, and `start` where
    it stands in no bytes of its own.
    """

    name: str
    start: int
    end: int
    kind: str = ""
    text: str = ""
    error: bool = False
    parts: list[Node] = field(default_factory=list)


class Forest:
    """Makes nodes of spans, of an API's body; `left` is the number that it may still make."""

    def __init__(self, api: str, name_of: TopicName, left: int = NODES) -> None:
        self.api, self.name_of, self.left = api, name_of, left

    def nodes(self, spans: list[Span]) -> list[Node]:
        """One for each, as long as there is room."""
        found = list(islice(spans, max(0, self.left)))
        self.left -= len(found)
        return [self._node(span) for span in found]

    def _node(self, span: Span) -> Node:
        if isinstance(span.value, Entry):
            return self._record(span, span.value)
        of = span.field
        kind = "" if of is None else of.kind
        is_error = of is not None and of.mark == ERROR and isinstance(span.value, int)
        wrong = isinstance(span.value, Wrong)
        text, parts = self._text(span, kind), self.nodes(span.parts)
        return Node(
            span.name, span.start, span.end, kind, text, wrong or (is_error and bool(span.value)), parts
        )

    def _record(self, span: Span, entry: Entry) -> Node:
        """Its fields stand where it stands: their places within it are not told."""
        parts = [Node(name, span.start, span.end, "", text) for name, text in _told(entry)]
        self.left -= len(parts)
        parts += self.nodes(span.parts)
        return Node(span.name, span.start, span.end, "record", "", False, parts)

    def _text(self, span: Span, kind: str) -> str:
        value: Any = span.value
        if isinstance(value, Wrong | Opened):
            return str(value)
        if kind == "records":
            return "null" if value is None else f"{len(value):,} bytes of records"
        if span.parts or (kind in ("array", "struct") and not isinstance(value, list)):
            return f"{len(span.parts)}" if kind == "array" else ""
        if value is None:
            return "null"
        if isinstance(value, int) and not isinstance(value, bool) and span.field is not None:
            return f"{value} {meaning(span.field.name, value, self.api, span.field.mark)}".rstrip()
        if isinstance(value, bytes):
            return self._bytes(value, span)
        if isinstance(value, list):
            return _cut(", ".join(_one(one) for one in value)) if value else "empty"
        return _cut(_one(value)) or '""'

    def _bytes(self, value: bytes, span: Span) -> str:
        if not value:
            return "empty"
        if span.field is not None and span.field.kind == "uuid":
            name = self.name_of(value) if span.field.mark == TOPIC_ID else None
            return uuid_text(value) if name is None else f"{uuid_text(value)} {printable(name)}"
        shown = value[: TEXT // 2].hex()
        return shown if len(value) <= TEXT // 2 else f"{shown}… ({len(value):,} bytes)"


def _told(entry: Entry) -> Iterator[tuple[str, str]]:
    record = entry.record
    yield "offset", str(record.offset)
    if record.timestamp >= 0:
        yield "timestamp", f"{record.timestamp} {moment(record.timestamp)}".rstrip()
    for name, data, decoded in (("key", record.key, entry.key), ("value", record.value, entry.value)):
        of = "" if decoded is None else f"{decoded.name} {decoded.values}"
        yield name, printable(_cut(of)) if of else _cut(content(data, True))
    for name, data in record.headers:
        yield f"header {printable(name)}", _cut(content(data, True))


def _one(value: Any) -> str:
    if isinstance(value, bytes):
        return uuid_text(value) if len(value) == 16 else value.hex()
    return str(value).lower() if isinstance(value, bool) else printable(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}… ({len(text):,} characters)"
