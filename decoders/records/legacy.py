"""Message sets of magic 0 (to Kafka 0.9) and 1 (0.10, KIP-31 and KIP-32).

Each message stands alone behind its offset. A compressed one holds a message set: its offset is that of the
last message inside, where offsets are absolute in magic 0, and count from any start in magic 1.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from struct import Struct

from msgspec.structs import replace

from klamm.decoders.records.codecs import compress, decompress
from klamm.decoders.records.shapes import (
    CODEC_BITS,
    CODECS,
    CREATE_TIME,
    LOG_APPEND_BIT,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    UNKNOWN,
    Batch,
    Record,
    RecordsError,
)

PLACE, CRC = Struct(">qi"), Struct(">I")  # offset and size; then the bytes that `size` counts
HEADERS = Struct(">bb"), Struct(">bbq")  # magic, attributes and, in magic 1, a timestamp
LENGTH = Struct(">i")  # of a key, of a value: -1 for null
LEAST_SIZES = tuple(PLACE.size + CRC.size + header.size + 2 * LENGTH.size for header in HEADERS)


def header(data: bytes, start: int, end: int) -> Batch:
    offset, _ = PLACE.unpack_from(data, start)
    (crc,) = CRC.unpack_from(data, start + PLACE.size)
    magic = data[start + 16]
    attributes, timestamp = data[start + 17], UNKNOWN
    kind = NO_TIMESTAMP
    if magic == 1:
        _, _, timestamp = HEADERS[1].unpack_from(data, start + 16)
        kind = LOG_APPEND_TIME if attributes & LOG_APPEND_BIT else CREATE_TIME
    codec = CODECS[attributes & CODEC_BITS]
    alone = codec == "none"
    return Batch(
        magic, offset if alone else UNKNOWN, offset, 1 if alone else UNKNOWN, codec,
        kind, timestamp, timestamp, crc=crc, data=data, start=start, end=end,
    )  # fmt: skip


def records(
    batch: Batch, limit: int, most_headers: int, decompressed: Callable[[int], None]
) -> Iterator[Record]:
    key, value = _key_and_value(batch, batch.data, batch.magic, batch.start, batch.end)
    if batch.codec == "none":
        return iter([Record(batch.last_offset, batch.max_timestamp, key, value)])
    if value is None:
        raise RecordsError("a compressed message without a value", batch.start)
    return _inside(batch, decompress(batch.codec, value, limit, batch.magic, decompressed))


def _key_and_value(
    batch: Batch, data: bytes, magic: int, start: int, end: int
) -> tuple[bytes | None, bytes | None]:
    pos, found = start + PLACE.size + CRC.size + HEADERS[magic].size, []
    for _ in range(2):
        (size,) = LENGTH.unpack_from(data, pos) if end - pos >= LENGTH.size else (-2,)
        pos += LENGTH.size
        if size < -1 or size > end - pos:
            raise RecordsError(
                f"a message's key or value of {size} bytes, {max(0, end - pos)} left", batch.start
            )
        found.append(None if size < 0 else data[pos : (pos := pos + size)])
    if pos != end:
        raise RecordsError(f"{end - pos} bytes of a message are left over", batch.start)
    return found[0], found[1]


def _inside(batch: Batch, data: bytes) -> Iterator[Record]:
    """The messages inside a compressed one, as Kafka reads them: at least one, none of them compressed. With
    magic 1 some producers leave 0 for the offset outside.
    """
    last = UNKNOWN
    for offset, _, _ in _messages(batch, data):
        last = offset
    base_offset = batch.last_offset - last if batch.magic == 1 and batch.last_offset else 0
    if base_offset < 0:
        raise RecordsError(f"offset {batch.last_offset}, while the last one inside is {last}", batch.start)
    appended = batch.timestamp_type == LOG_APPEND_TIME
    for offset, start, end in _messages(batch, data):
        inner = header(data, start, end)
        if inner.codec != "none":
            raise RecordsError("a compressed message in a compressed one", batch.start)
        key, value = _key_and_value(batch, data, inner.magic, start, end)
        timestamp = batch.max_timestamp if appended and inner.magic == 1 else inner.max_timestamp
        yield Record(base_offset + offset, timestamp, key, value)


def _messages(batch: Batch, data: bytes) -> Iterator[tuple[int, int, int]]:
    """The offset, start and end of each message of a decompressed set."""
    pos = 0
    while pos < len(data) or not data:
        reason = f"wrong or cut at byte {pos} of what was in {batch.codec}"
        if pos + LEAST_SIZES[0] > len(data):
            raise RecordsError(reason, batch.start)
        offset, size = PLACE.unpack_from(data, pos)
        magic, end = data[pos + 16], pos + PLACE.size + size
        if magic > 1 or end < pos + LEAST_SIZES[magic] or end > len(data):
            raise RecordsError(reason, batch.start)
        yield offset, pos, end
        pos = end


def write(batch: Batch, records: Sequence[Record]) -> bytes:
    """Does not write `base_timestamp` and the other fields that only magic 2 has."""
    if any(record.headers for record in records) or batch.is_control or batch.is_transactional:
        raise RecordsError(f"headers, transactions and control records need magic 2, not {batch.magic}")
    magic, appended = batch.magic, batch.timestamp_type == LOG_APPEND_TIME
    kind = LOG_APPEND_BIT if magic == 1 and appended else 0
    if appended and batch.max_timestamp != UNKNOWN:
        records = [replace(record, timestamp=batch.max_timestamp) for record in records]
    if batch.codec == "none":
        return b"".join([_message(magic, kind, record, record.offset) for record in records])
    if not records:
        raise RecordsError("a compressed message must hold others")
    base_offset = records[0].offset if magic == 1 else 0
    inside = b"".join([_message(magic, kind, record, record.offset - base_offset) for record in records])
    last_offset, timestamp = batch.last_offset, batch.max_timestamp
    if last_offset == UNKNOWN:
        last_offset = records[-1].offset
    if timestamp == UNKNOWN:
        timestamp = max(record.timestamp for record in records)
    outer = Record(last_offset, timestamp, None, compress(batch.codec, inside, magic))
    return _message(magic, kind | CODECS.index(batch.codec), outer, last_offset)


def _message(magic: int, attributes: int, record: Record, offset: int) -> bytes:
    parts = [HEADERS[1].pack(1, attributes, record.timestamp) if magic else HEADERS[0].pack(0, attributes)]
    for data in (record.key, record.value):
        parts += (LENGTH.pack(-1),) if data is None else (LENGTH.pack(len(data)), data)
    body = b"".join(parts)
    return PLACE.pack(offset, CRC.size + len(body)) + CRC.pack(zlib.crc32(body)) + body
