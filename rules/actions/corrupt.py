"""corrupt: what arrives is not what was sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from klamm.decoders.records import Batch, Record
from klamm.decoders.schema import FIXED, Api, Field, Side, all_fields, default_of
from klamm.rules.actions.batches import carriers, random_bytes, rewritten, scrambled, with_records, with_value
from klamm.rules.actions.leaves import Path, edited
from klamm.rules.frame import Frame
from klamm.rules.orders import OnAnswer, Order, Raw
from klamm.rules.quantities import Bytes, FieldPath, Share
from klamm.rules.rule import Draw

What = Literal["crc", "records", "value", "schema id", "field", "body", "truncate"]
CRC_AT = {0: 12, 1: 12, 2: 17}  # by magic: the CRC's 4 bytes
RECORDS_AT = {0: 18, 1: 18, 2: 61}  # the first byte that may change without hiding the batch
SCHEMA_ID = 5  # bytes: a 0, and the id in 4 (the wire format of schema registries)


@dataclass(frozen=True, slots=True)
class Corrupt:
    """Change a frame on its way: record batches, a field, or any bytes. Lengths around it stay right, so that
    clients find the damage itself. Of records it is the request's if it has any, else the answer's.
    """

    name: ClassVar[str] = "corrupt"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    what: What = "crc"
    """crc: wrong checksums of batches; records: random bytes in them, under the old checksum; value: random
    bytes after each record's value, under a right one; schema id: another schema id in each value; field: a
    random value of `field`; body: random bytes anywhere; truncate: the end is missing."""
    size: Bytes = Bytes(10)
    """The number of bytes that are changed, added or missing."""
    schema_id: int = 0
    """The schema id to put in place of the real one."""
    field: FieldPath = FieldPath("")
    """A field of the wire table, such as topics.partitions.leader_id."""
    share: Share = Share(1.0)
    """The share of the records whose value changes."""
    of: Literal["answer", "request"] = "answer"
    """The body that is changed or truncated: the request's or the answer's."""

    def fits(self, api: Api, version: int, side: Side) -> str | None:
        """Why this cannot be done to such frames."""
        if self.what in ("body", "truncate"):
            return None
        found = any(self._paths(fields, version) for fields in (api.fields(side), api.response))
        if self.what == "field":
            return None if found else f"{api.name} v{version} has no field {self.field or '(say which)'}"
        return None if found else f"{api.name} v{version} carries no records"

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        match self.what:
            case "crc":
                return rewritten(frame, _wrong_crc)
            case "records":
                return rewritten(frame, lambda batch: self._noisy(batch, draw))
            case "value" | "schema id":
                return rewritten(
                    frame, lambda batch: with_records(batch, lambda one: [self._other(one, draw)])
                )
            case "field":
                return edited(frame, self._paths, lambda _, field, __, on: _random(field, on.version, draw))
        if frame.side == "request" and self.of == "answer":
            return [OnAnswer(lambda answer: self._raw(answer, draw), needs_request=False)]
        return self._raw(frame, draw)

    def _paths(self, fields: tuple[Field, ...], version: int) -> list[Path]:
        if self.what != "field":
            return carriers(fields, version)
        return [path for path, _ in all_fields(fields, version) if ".".join(path) == self.field]

    def _raw(self, frame: Frame, draw: Draw) -> list[Order]:
        body = frame.body
        if self.what == "truncate":
            return [Raw(body[: max(0, len(body) - self.size)])]
        return [Raw(scrambled(body, 0, len(body), draw, self.size))]

    def _noisy(self, batch: Batch, draw: Draw) -> bytes:
        data = batch.data[batch.start : batch.end]
        return scrambled(data, RECORDS_AT[batch.magic], len(data), draw, self.size)

    def _other(self, record: Record, draw: Draw) -> Record:
        """The record with another value; a tombstone stays one."""
        value = record.value
        if value is None or (self.share < 1 and draw() >= self.share):
            return record
        if self.what == "value":
            return with_value(record, value + random_bytes(draw, self.size))
        schema = b"\0" + (self.schema_id & 0xFFFFFFFF).to_bytes(4, "big")
        return with_value(record, schema + (value[SCHEMA_ID:] if value[:1] == b"\0" else value))


def _wrong_crc(batch: Batch) -> bytes:
    data = batch.data[batch.start : batch.end]
    at = CRC_AT[batch.magic]
    return data[:at] + bytes(byte ^ 0xFF for byte in data[at : at + 4]) + data[at + 4 :]


def _random(field: Field, version: int, draw: Draw) -> Any:
    """Any value of a field's type; for arrays and structs, the default."""
    if field.kind in ("array", "struct"):
        return default_of(field, version)
    if field.kind == "boolean":
        return draw() < 0.5
    if field.kind == "float64":
        return draw()
    if field.kind in FIXED and field.kind != "uuid":
        size = FIXED[field.kind][1]
        number = int.from_bytes(random_bytes(draw, size), "big")
        return number - (1 << 8 * size - 1) if not field.kind.startswith("u") else number
    noise = random_bytes(draw, 16)
    return noise.hex() if field.kind == "string" else noise
