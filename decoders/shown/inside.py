"""Reads the payloads that Kafka puts inside fields of bytes, and shows them below the field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from klamm.decoders import spans
from klamm.decoders.interpret import Layout
from klamm.decoders.payloads import (
    field_payload,
    group_payload,
    layout_read,
    payload_oddity,
    read_payload,
    user_data,
)
from klamm.decoders.payloads.body import Decoded
from klamm.decoders.payloads.consumer_offsets import GROUP_METADATA
from klamm.decoders.payloads.tables import Part
from klamm.decoders.schema import RECORDS, TOPIC, TOPIC_ID
from klamm.decoders.shown.payloads import OF_MEMBERS
from klamm.decoders.shown.records import Opened, Wrong, below, open_records
from klamm.decoders.spans import Span
from klamm.decoders.text import TopicName, nameless

GROUP_APIS = {"JoinGroup", "SyncGroup", "DescribeGroups"}
PARTS: dict[str, Part] = {
    "metadata": "metadata", "member_metadata": "metadata",
    "assignment": "assignment", "member_assignment": "assignment",
}  # fmt: skip
PARTS_OF = {**dict.fromkeys(GROUP_APIS, PARTS), GROUP_METADATA.value.name: OF_MEMBERS}
PROTOCOL_NAMES = {"name", "protocol_name", "protocol_data", "protocol"}


class Inside(NamedTuple):
    """A payload that was found in a field, as far as its bytes go; `reason`: why no further, or ""."""

    name: str
    layout: Layout
    tree: Span
    path: str
    reason: str


class Alone(NamedTuple):
    """A payload in no frame: `whole` has its fields, and why they end early; `within`: the payloads in its
    fields, by where these begin.
    """

    payload: Inside
    whole: Span
    within: dict[int, Inside | list[Opened]]


class Around(NamedTuple):
    """The fields before and above a field of bytes that tell its contents."""

    protocol_type: str | None
    protocol: str | None
    topic: str | None = None


def look_inside(
    api: str,
    data: bytes,
    body: Span,
    asked: dict[str, Any] | None,
    content: bool = True,
    names: TopicName = nameless,
) -> dict[int, Inside | list[Opened]]:
    """Hangs records, what members of a group say, and other payloads below their fields; returns them by
    where these begin.

    `asked` are the values of the request that a response answers: old ones do not tell the protocol type.
    `content`: of batches their records too, not their headers only. `names` tells the topics of ids.
    """
    search = _Search(api, data, content, names)
    search.walk(body, "", Around((asked or {}).get("protocol_type"), (asked or {}).get("protocol_name")))
    return search.found


def topics(marked: Iterable[tuple[str | None, Any]], names: TopicName) -> Iterator[str]:
    """The topics that fields name, by the fields' marks and values."""
    for mark, value in marked:
        name = names(value) if mark == TOPIC_ID and value is not None else value if mark == TOPIC else None
        if isinstance(name, str):
            yield name


class _Search:
    def __init__(self, api: str, data: bytes, content: bool, names: TopicName) -> None:
        self.api, self.data, self.content, self.names = api, data, content, names
        self.parts = PARTS_OF.get(api, {})
        self.found: dict[int, Inside | list[Opened]] = {}

    def walk(self, span: Span, path: str, known: Around) -> None:
        texts = {part.name: part.value for part in span.parts if isinstance(part.value, str)}
        protocol = next((texts[name] for name in PROTOCOL_NAMES if name in texts), known.protocol)
        marked = ((part.field.mark, part.value) for part in span.parts if part.field is not None)
        topic = next(topics(marked, self.names), known.topic)
        known = Around(texts.get("protocol_type", known.protocol_type), protocol, topic)
        for part in span.parts:
            whole, at = part.end >= 0 and isinstance(part.value, bytes), below(path, part.name)
            if whole and part.name in self.parts:
                self.member(part, at, self.parts[part.name], known)
            elif whole and part.field is not None and part.field.mark == RECORDS:
                self.found[part.start] = open_records(part, self.data, topic, self.content)
            elif whole and (read := field_payload(self.api, part.name, part.value)) is not None:
                self.hang(part, at, read)
            else:
                self.walk(part, at, known)

    def member(self, span: Span, path: str, part: Part, known: Around) -> None:
        read = group_payload(known.protocol_type, part, span.value)
        if read is None:
            return
        self.hang(span, path, read)
        if known.protocol_type and known.protocol_type != "consumer":
            return
        for inner in span.parts[0].parts:
            if inner.name == "user_data":
                added = user_data(known.protocol, part, inner.value)
                if added is not None:
                    self.hang(inner, below(path, inner.name), added)

    def hang(self, span: Span, path: str, read: Decoded) -> None:
        one, span.parts = _shown(read, self.data, span.end - len(span.value), span.end, path)
        self.found[span.start] = one


def payload_alone(name: str, data: bytes) -> Alone:
    """A payload that is all of `data`. Raises UnknownApi."""
    one, parts = _shown(read_payload(name, data), data, 0, len(data), "")
    within = look_inside(one.name, data, one.tree, None)
    return Alone(one, Span("", None, 0, len(data), parts=parts), within)


def _shown(read: Decoded, data: bytes, start: int, end: int, path: str) -> tuple[Inside, list[Span]]:
    """A payload that lies there, and its spans: its fields, and why they end early."""
    of = layout_read(read)
    tree, _ = spans.read(of, data, start, end)
    tree.name = f"{read.name} v{read.version}"
    reason = payload_oddity(read, data[start:end])
    parts = [tree]
    if read.failure is not None:
        _prune(tree, end)
        at = start + read.failure.offset
        parts.append(Span("missing" if at == end else "unreadable", None, at, end, Wrong(reason)))
    return Inside(read.name, of, tree, path, reason), parts


def _prune(span: Span, end: int) -> None:
    """Takes out the fields of which nothing was read. An array that was read in part goes on to `end`."""
    for part in span.parts:
        _prune(part, end)
        if part.end < 0 and not part.parts and part.value:
            part.end = end
    span.parts = [part for part in span.parts if part.end >= 0 or part.parts]
