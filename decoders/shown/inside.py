"""Reads the payloads that Kafka puts inside fields of bytes, and shows them below the field."""

from __future__ import annotations

from typing import Any, NamedTuple

from klamm.decoders import spans
from klamm.decoders.failures import DecodeError
from klamm.decoders.interpret import Layout
from klamm.decoders.payloads import group_payload, payload_layout, user_data
from klamm.decoders.payloads.body import Decoded
from klamm.decoders.payloads.tables import Part
from klamm.decoders.schema import RECORDS, TOPIC
from klamm.decoders.shown.records import Opened, Wrong, open_records
from klamm.decoders.spans import Span

GROUP_APIS = {"JoinGroup", "SyncGroup", "DescribeGroups"}
PARTS: dict[str, Part] = {
    "metadata": "metadata", "member_metadata": "metadata",
    "assignment": "assignment", "member_assignment": "assignment",
}  # fmt: skip
PROTOCOL_NAMES = {"name", "protocol_name", "protocol_data"}


class Inside(NamedTuple):
    """A payload that was found in a field."""

    name: str
    layout: Layout
    tree: Span


class Around(NamedTuple):
    """The fields before and above a field of bytes that tell its contents."""

    protocol_type: str | None
    protocol: str | None
    topic: str | None = None


def look_inside(
    api: str, data: bytes, body: Span, asked: dict[str, Any] | None, content: bool = True
) -> dict[int, Inside | list[Opened]]:
    """Hangs records, and what members of a group say, below their fields; returns it by where these begin.

    `asked` are the values of the request that a response answers: old ones do not tell the protocol type.
    `content`: of batches their records too, not their headers only.
    """
    search = _Search(data, PARTS if api in GROUP_APIS else {}, content)
    search.walk(body, Around((asked or {}).get("protocol_type"), (asked or {}).get("protocol_name")))
    return search.found


class _Search:
    def __init__(self, data: bytes, parts: dict[str, Part], content: bool) -> None:
        self.data, self.parts, self.content = data, parts, content
        self.found: dict[int, Inside | list[Opened]] = {}

    def walk(self, span: Span, known: Around) -> None:
        texts = {part.name: part.value for part in span.parts if isinstance(part.value, str)}
        protocol = next((texts[name] for name in PROTOCOL_NAMES if name in texts), known.protocol)
        topics = [part.value for part in span.parts if part.field is not None and part.field.mark == TOPIC]
        topic = next((name for name in topics if isinstance(name, str)), known.topic)
        known = Around(texts.get("protocol_type", known.protocol_type), protocol, topic)
        for part in span.parts:
            whole = part.end >= 0 and isinstance(part.value, bytes)
            if whole and part.name in self.parts:
                self.member(part, self.parts[part.name], known)
            elif whole and part.field is not None and part.field.mark == RECORDS:
                self.found[part.start] = open_records(part, self.data, topic, self.content)
            else:
                self.walk(part, known)

    def member(self, span: Span, part: Part, known: Around) -> None:
        try:
            read = group_payload(known.protocol_type or "consumer", part, span.value)
        except DecodeError as failure:
            if known.protocol_type is not None:
                _refuse(span, failure)
            return
        self.hang(span, read)
        if read is None or known.protocol_type not in (None, "consumer"):
            return
        for inner in span.parts[0].parts:
            if inner.name == "user_data":
                try:
                    self.hang(inner, user_data(known.protocol, part, inner.value))
                except DecodeError as failure:
                    _refuse(inner, failure)

    def hang(self, span: Span, read: Decoded | None) -> None:
        if read is None:
            return
        of = payload_layout(read.name, read.version)
        tree, _ = spans.read(of, self.data, span.end - len(span.value), span.end)
        tree.name = f"{read.name} v{read.version}"
        self.found[span.start] = Inside(read.name, of, tree)
        span.parts = [tree]


def _refuse(span: Span, failure: DecodeError) -> None:
    reason = Wrong(f"no {failure.api}: {failure.path or 'body'}, {failure.reason}")
    span.parts = [Span("unreadable", None, span.end - len(span.value), span.end, reason)]
