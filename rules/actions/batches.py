"""Record batches with other records in them, and frames that carry such batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import shake_128

from klamm.decoders import records
from klamm.decoders.records import UNKNOWN, Batch, Record
from klamm.decoders.schema import RECORDS, Field, marked
from klamm.rules.actions.leaves import Path, edited
from klamm.rules.frame import Frame
from klamm.rules.orders import Order
from klamm.rules.rule import Draw

ChangeBatch = Callable[[Batch], bytes]


def carriers(fields: tuple[Field, ...], version: int) -> list[Path]:
    """The fields of a body that hold record batches."""
    return marked(fields, version, frozenset({RECORDS}))


def rewritten(frame: Frame, change: ChangeBatch) -> Iterable[Order]:
    """A frame, or its answer, with its batches changed. What a broker has cut off stays as it is."""

    def each(_: Path, field: Field, data: bytes | None, on: Frame) -> bytes | None:
        if not data:
            return data
        end = records.valid_bytes(data)
        new = b"".join(map(change, records.batches(data))) + data[end:]
        return data if new == data else new

    return edited(frame, carriers, each)


def with_records(batch: Batch, change: Callable[[Record], Iterable[Record]], anew: bool = False) -> bytes:
    """A batch with other records, and right sizes, counts and checksum. Control batches stay as they are.
    `anew`: offsets are counted on from the first, as in a batch that a producer has made.
    """
    if batch.is_control:
        return batch.data[batch.start : batch.end]
    found = [new for record in records.records(batch) for new in change(record)]
    base = batch
    if anew:
        first = max(0, batch.base_offset)
        found = [_at(record, first + index) for index, record in enumerate(found)]
        base = batch._replace(base_offset=first, last_offset=UNKNOWN)
    return records.write(base, found)


def _at(record: Record, offset: int) -> Record:
    return Record(offset, record.timestamp, record.key, record.value, record.headers)


def with_value(record: Record, value: bytes | None) -> Record:
    return Record(record.offset, record.timestamp, record.key, value, record.headers)


def random_bytes(draw: Draw, count: int) -> bytes:
    """Random bytes without a 0, so that adding them always changes a byte."""
    made = shake_128(repr(draw()).encode()).digest(count)
    return bytes(byte or 1 for byte in made)


def scrambled(data: bytes, start: int, stop: int, draw: Draw, count: int) -> bytes:
    """Data of which so many bytes between two positions are others."""
    room = stop - start
    if room <= 0:
        return data
    first = start + int(draw() * max(1, room - count + 1))
    noise = random_bytes(draw, min(count, room))
    changed = bytes(old ^ new for old, new in zip(data[first:stop], noise, strict=False))
    return data[:first] + changed + data[first + len(changed) :]
