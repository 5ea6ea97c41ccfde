"""Record batches of magic 2, from Kafka 0.11 on (KIP-98), their headers and their records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct

from crc32c import crc32c

from klamm.decoders.records.codecs import compress, decompress
from klamm.decoders.records.shapes import (
    CODEC_BITS,
    CODECS,
    CONTROL_BIT,
    CREATE_TIME,
    DELETE_HORIZON_BIT,
    LOG_APPEND_BIT,
    LOG_APPEND_TIME,
    TRANSACTIONAL_BIT,
    UNKNOWN,
    Batch,
    Record,
    RecordsError,
)
from klamm.decoders.tags import Malformed, long_uvarint

# Base offset, size of the rest, partition leader epoch, magic, CRC. Then what the CRC is of: attributes, last
# offset delta, base and max timestamp, producer id and epoch, base sequence, count.
UNCHECKED, CHECKED = Struct(">qiibI"), Struct(">hiqqqhii")
LEAST_SIZE = UNCHECKED.size + CHECKED.size
VARLONG_BYTES = 10

Headers = tuple[tuple[str, bytes | None], ...]


def header(data: bytes, start: int, end: int) -> Batch:
    base_offset, _, epoch, magic, crc = UNCHECKED.unpack_from(data, start)
    attributes, delta, *times_and_producer, count = CHECKED.unpack_from(data, start + UNCHECKED.size)
    base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence = times_and_producer
    return Batch(
        magic, base_offset, base_offset + delta, count, CODECS[attributes & CODEC_BITS],
        LOG_APPEND_TIME if attributes & LOG_APPEND_BIT else CREATE_TIME, base_timestamp, max_timestamp,
        attributes & TRANSACTIONAL_BIT > 0, attributes & CONTROL_BIT > 0, attributes & DELETE_HORIZON_BIT > 0,
        epoch, producer_id, producer_epoch, base_sequence, crc, data, start, end,
    )  # fmt: skip


def records(
    batch: Batch, limit: int, most_headers: int, decompressed: Callable[[int], None]
) -> Iterator[Record]:
    data, start, end = batch.data, batch.start + LEAST_SIZE, batch.end
    if batch.codec == "none":
        return _records(batch, data, start, end, "", most_headers)
    data = decompress(batch.codec, data[start:end], limit, 2, decompressed)
    return _records(batch, data, 0, len(data), f" of what was in {batch.codec}", most_headers)


def _records(
    batch: Batch, data: bytes, pos: int, end: int, where: str, most_headers: int
) -> Iterator[Record]:
    """Varints of one and two bytes are read in place: nearly all are."""
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    appended = batch.timestamp_type == LOG_APPEND_TIME
    timestamp, start = batch.max_timestamp, pos
    headers: Headers
    try:
        for _ in range(batch.record_count):
            start = pos
            size = data[pos]
            if size < 0x80:
                pos += 1
            elif (high := data[pos + 1]) < 0x80:
                size += high * 128 - 128
                pos += 2
            else:
                size, pos = long_uvarint(data, pos + 1, size)
            stop = pos + (size >> 1)
            if size & 1 or stop > end:
                raise Malformed

            delta = data[pos + 1]  # behind the attributes, of which none is in use
            if delta < 0x80:
                pos += 2
            elif (high := data[pos + 2]) < 0x80:
                delta += high * 128 - 128
                pos += 3
            else:
                delta, pos = _long_uvarlong(data, pos + 2, delta)
            if not appended:
                timestamp = base_timestamp + (~(delta >> 1) if delta & 1 else delta >> 1)

            delta = data[pos]
            if delta < 0x80:
                pos += 1
            elif (high := data[pos + 1]) < 0x80:
                delta += high * 128 - 128
                pos += 2
            else:
                delta, pos = long_uvarint(data, pos + 1, delta)
            offset = base_offset + (~(delta >> 1) if delta & 1 else delta >> 1)

            size = data[pos]
            if size < 0x80:
                pos += 1
            elif (high := data[pos + 1]) < 0x80:
                size += high * 128 - 128
                pos += 2
            else:
                size, pos = long_uvarint(data, pos + 1, size)
            if size & 1:
                key = None
            else:
                key = data[pos : (pos := pos + (size >> 1))]

            size = data[pos]
            if size < 0x80:
                pos += 1
            elif (high := data[pos + 1]) < 0x80:
                size += high * 128 - 128
                pos += 2
            else:
                size, pos = long_uvarint(data, pos + 1, size)
            if size & 1:
                value = None
            else:
                value = data[pos : (pos := pos + (size >> 1))]

            if data[pos]:
                headers, pos = _headers(data, pos, stop, most_headers)
            else:
                headers = ()
                pos += 1
            if pos != stop:
                raise Malformed
            yield Record(offset, timestamp, key, value, headers)
    except (IndexError, Malformed):
        raise RecordsError(f"what begins at byte {start}{where} is no record", batch.start) from None
    if pos != end or batch.record_count < 0:
        told = f"{end - pos} bytes{where} are left over behind {batch.record_count} records"
        raise RecordsError(told, batch.start)


def _headers(data: bytes, pos: int, stop: int, most: int) -> tuple[Headers, int]:
    count, pos = _varint(data, pos)
    if not 0 <= count <= min(most, (stop - pos) // 2):
        raise Malformed
    found = []
    for _ in range(count):
        size, pos = _varint(data, pos)
        if size < 0:
            raise Malformed
        key, pos = data[pos : pos + size].decode("utf-8", "surrogateescape"), pos + size
        size, pos = _varint(data, pos)
        found.append((key, data[pos : pos + size] if size >= 0 else None))
        pos += max(size, 0)
        if pos > stop:
            raise Malformed
    return tuple(found), pos


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    """Zigzag: the sign stands in the last bit."""
    value = data[pos]
    pos += 1
    if value > 0x7F:
        value, pos = long_uvarint(data, pos, value)
    return (value >> 1) ^ -(value & 1), pos


def _long_uvarlong(data: bytes, pos: int, first: int) -> tuple[int, int]:
    value = first & 0x7F
    for shift in range(7, 7 * VARLONG_BYTES, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, pos
    raise Malformed


def write(batch: Batch, records: Sequence[Record]) -> bytes:
    first = records[0] if records else Record(timestamp=UNKNOWN)
    base_offset = first.offset if batch.base_offset == UNKNOWN else batch.base_offset
    last_offset = batch.last_offset
    if last_offset == UNKNOWN:
        last_offset = records[-1].offset if records else base_offset
    if any(not base_offset <= record.offset <= last_offset for record in records):
        raise RecordsError(f"an offset that is not between the batch's, {base_offset} and {last_offset}")
    base_timestamp = first.timestamp if batch.base_timestamp == UNKNOWN else batch.base_timestamp
    max_timestamp = batch.max_timestamp
    if max_timestamp == UNKNOWN:
        max_timestamp = max((record.timestamp for record in records), default=UNKNOWN)
    body = b"".join([_written(record, base_offset, base_timestamp) for record in records])
    if batch.codec != "none":
        body = compress(batch.codec, body)
    attributes = CODECS.index(batch.codec)
    for told, bit in (
        (batch.timestamp_type == LOG_APPEND_TIME, LOG_APPEND_BIT),
        (batch.is_transactional, TRANSACTIONAL_BIT),
        (batch.is_control, CONTROL_BIT),
        (batch.has_delete_horizon, DELETE_HORIZON_BIT),
    ):
        attributes |= bit if told else 0
    checked = CHECKED.pack(
        attributes, last_offset - base_offset, base_timestamp, max_timestamp,
        batch.producer_id, batch.producer_epoch, batch.base_sequence, len(records),
    ) + body  # fmt: skip
    size = UNCHECKED.size - 12 + len(checked)
    return UNCHECKED.pack(base_offset, size, batch.partition_leader_epoch, 2, crc32c(checked)) + checked


def _written(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    deltas = _zigzag(record.timestamp - base_timestamp), _zigzag(record.offset - base_offset)
    parts = [b"\0", *deltas, *_sized(record.key), *_sized(record.value), _zigzag(len(record.headers))]
    for name, content in record.headers:
        parts += (*_sized(name.encode("utf-8", "surrogateescape")), *_sized(content))
    body = b"".join(parts)
    return _zigzag(len(body)) + body


def _sized(data: bytes | None) -> tuple[bytes, ...]:
    return (b"\1",) if data is None else (_zigzag(len(data)), data)


def _zigzag(value: int) -> bytes:
    value = value << 1 ^ value >> 63
    if value < 0x80:
        return ONE_BYTE[value]
    if value >> 64:
        raise RecordsError("a number does not fit: a difference to the batch's of more than 64 bits")
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


ONE_BYTE = [bytes([value]) for value in range(0x80)]
