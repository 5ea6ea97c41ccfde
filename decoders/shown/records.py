"""Records inside a field: their batches, and what Kafka itself writes into its own topics and markers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from klamm.decoders import spans
from klamm.decoders.failures import DecodeError
from klamm.decoders.interpret import Layout
from klamm.decoders.payloads import COORDINATOR_TOPICS, control_record, coordinator_record, payload_oddity
from klamm.decoders.payloads.body import Decoded
from klamm.decoders.payloads.control_records import CONTROL_RECORD_TYPE, CONTROL_TYPES
from klamm.decoders.records import (
    LEAST_SIZES,
    UNKNOWN,
    Batch,
    MissingCodec,
    Record,
    RecordsError,
    batches,
    records,
    valid_bytes,
)
from klamm.decoders.schema import bytestring, int8, int16, int32, int64, uint32
from klamm.decoders.shown.payloads import base64, payload_object, payload_text
from klamm.decoders.shown.words import content, moment, quoted
from klamm.decoders.spans import Span

MESSAGE = [int64("offset"), int32("message_size"), uint32("crc"), int8("magic"), int8("attributes")]
CONTENT = [bytestring("key", null="0+"), bytestring("value", null="0+")]
HEADERS = {  # by magic; the names are those of Kafka's documentation
    0: [*MESSAGE, *CONTENT],
    1: [*MESSAGE, int64("timestamp"), *CONTENT],
    2: [
        int64("base_offset"), int32("batch_length"), int32("partition_leader_epoch"), int8("magic"),
        uint32("crc"), int16("attributes"), int32("last_offset_delta"), int64("base_timestamp"),
        int64("max_timestamp"), int64("producer_id"), int16("producer_epoch"), int32("base_sequence"),
        int32("records_count"),
    ],
}  # fmt: skip
LAYOUTS = {magic: Layout("RecordBatch", magic, "response", False, tuple(of)) for magic, of in HEADERS.items()}
ABSENT = -1  # where a record stands that was compressed: not in these bytes


class Wrong(str):
    """The reason why something inside a field cannot be read, or is not as it should be."""


class Entry(NamedTuple):
    """A record, and its meaning where it is one of Kafka's own."""

    record: Record
    key: Decoded | None = None
    value: Decoded | None = None

    @property
    def wrongs(self) -> Iterator[Wrong]:
        """Why its key or its value is not as its layout says."""
        parts = ("key", self.record.key, self.key), ("value", self.record.value, self.value)
        for name, data, decoded in parts:
            if decoded is not None and decoded.failure is not None:
                yield Wrong(f"{name}: {payload_oddity(decoded, data or b'')}")


class Opened(NamedTuple):
    """A batch and its records, as far as they can be read; None: they were not looked at."""

    batch: Batch
    entries: list[Entry] | None
    wrong: Wrong | None

    def __str__(self) -> str:
        batch = self.batch
        kinds = [("control", batch.is_control), ("transactional", batch.is_transactional)]
        flags = "".join(f"{kind} " for kind, there in kinds if there)
        offsets = f"offsets {batch.base_offset}-{batch.last_offset}" if batch.magic == 2 else ""
        count = batch.record_count if self.entries is None else len(self.entries)
        of = "" if count == UNKNOWN else f" of {count} record{'' if count == 1 else 's'}"
        parts = [f"{flags}batch{of}", offsets, batch.codec]
        return ", ".join(part for part in parts if part and part != "none")


def open_records(span: Span, data: bytes, topic: str | None, content: bool = True) -> list[Opened]:
    """Hangs batches below their field, and records below these if `content` is wanted."""
    base, found = span.end - len(span.value), []
    try:
        for batch in batches(span.value):
            opened = _opened(batch, topic) if content else Opened(batch, None, None)
            found.append(opened)
            span.parts.append(_batch_span(opened, data, base, len(span.parts)))
        end = valid_bytes(span.value)
        if end < len(span.value):
            left = Span("part of a batch", None, base + end, span.end, span.value[end:])
            span.parts.append(left)
    except RecordsError as problem:
        start = base + (problem.offset or 0)
        span.parts.append(Span("unreadable", None, start, span.end, Wrong(problem.reason)))
    return found


def _opened(batch: Batch, topic: str | None) -> Opened:
    entries: list[Entry] = []
    wrong = None if batch.crc_ok else Wrong("the checksum is of other bytes")
    try:
        entries += (entry_of(record, batch, topic) for record in records(batch))
    except (RecordsError, MissingCodec) as problem:
        wrong = Wrong(getattr(problem, "reason", str(problem)))
    return Opened(batch, entries, wrong)


def entry_of(record: Record, batch: Batch, topic: str | None) -> Entry:
    """A record of a batch: one of Kafka's own in a control batch, or in a topic of a coordinator."""
    if record.key is None or not (batch.is_control or topic in COORDINATOR_TOPICS):
        return Entry(record)
    try:
        if batch.is_control:
            return Entry(record, *control_record(record.key, record.value))
        return Entry(record, *coordinator_record(topic or "", record.key, record.value))
    except DecodeError:
        return Entry(record)


def _batch_span(opened: Opened, data: bytes, base: int, index: int) -> Span:
    batch = opened.batch
    start, end = base + batch.start, base + batch.end
    header, _ = spans.read(LAYOUTS[batch.magic], data, start, end)
    below = header.parts
    if opened.entries is None:
        return Span(f"[{index}]", None, start, end, opened, below)
    if opened.wrong is not None:
        below.append(Span("damaged", None, start, start, value=opened.wrong))
    places: list[tuple[int, int]] = []
    if batch.codec == "none":
        places = [(start, start)] if batch.magic < 2 else list(_places(data, header.end, end))
    read = []
    for number, entry in enumerate(opened.entries):
        place = places[number] if number < len(places) else (ABSENT, ABSENT + 1)
        wrong = [Span("unreadable", None, *place, reason) for reason in entry.wrongs]
        read.append(Span(f"[{number}]", None, *place, entry, wrong))
    below.append(Span("records", None, header.end, end, parts=read))
    return Span(f"[{index}]", None, start, end, opened, below)


def is_blank(batch: Batch) -> bool:
    """Whether zeros stand where records were, as in captures that keep none."""
    if batch.magic == 2:
        return batch.record_count > 0 and not any(batch.data[batch.start + LEAST_SIZES[2] : batch.end])
    if batch.crc_ok:
        return False
    try:
        return not any(any(record.key or b"") or any(record.value or b"") for record in records(batch))
    except (RecordsError, MissingCodec):
        return False


def _places(data: bytes, pos: int, end: int) -> Iterator[tuple[int, int]]:
    """The positions of the records of an uncompressed batch: each begins with its size."""
    while pos < end:
        start, size, shift = pos, 0, 0
        while pos < end and shift < 35:
            byte = data[pos]
            pos, size, shift = pos + 1, size | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                break
        pos += size >> 1
        yield start, min(pos, end)


def wrongs(span: Span, path: str = "") -> Iterator[tuple[str, int, Wrong]]:
    """Path, place and reason of all that is inside fields and cannot be read."""
    for part in span.parts:
        if isinstance(part.value, Wrong):
            yield path, part.start, part.value
        yield from wrongs(part, below(path, part.name))


def below(path: str, name: str) -> str:
    """The path of a field or an element of an array below another one."""
    return f"{path}{'' if name.startswith('[') or not path else '.'}{name}"


def described(entry: Entry, full: bool) -> str:
    """A record in a line."""
    record = entry.record
    parts = [f"offset {record.offset}"]
    if entry.key is not None and entry.key.name == CONTROL_RECORD_TYPE.name:
        kind = CONTROL_TYPES.get(entry.key.values.get("type", UNKNOWN))
        parts.append(kind[0] if kind is not None else "of an unknown type")
    if record.timestamp != UNKNOWN:
        parts.append(moment(record.timestamp) or f"timestamp {record.timestamp}")
    for name, data, decoded in (("key", record.key, entry.key), ("value", record.value, entry.value)):
        if decoded is not None:
            parts.append(f"{name} {payload_text(decoded, full)}")
        else:
            parts.append(f"{name} {content(data, full)}")
    parts += (f"header {quoted(name, full)} {content(data, full)}" for name, data in record.headers)
    return ", ".join(parts)


def batch_object(opened: Opened) -> dict[str, Any]:
    """A batch for JSON; keys, values and headers of records in base64."""
    batch = opened.batch
    fields = {name: value for name, value in batch._asdict().items() if name not in ("data", "start", "end")}
    wrong = {} if opened.wrong is None else {"error": str(opened.wrong)}
    found = [_record_object(entry) for entry in opened.entries or ()]
    return {**fields, "crc_ok": batch.crc_ok, **wrong, "records": found}


def _record_object(entry: Entry) -> dict[str, Any]:
    record = entry.record
    fields: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    for name, data, decoded in (("key", record.key, entry.key), ("value", record.value, entry.value)):
        fields[name] = base64(data)
        if decoded is not None:
            fields[f"{name}_of"] = payload_object(decoded, data)
    fields["headers"] = [[name, base64(data)] for name, data in record.headers]
    return fields
