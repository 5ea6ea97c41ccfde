"""Records fields to batches and records and back, whatever their format (magic 0, 1 or 2) and codec.

    for batch in batches(data):           the headers; nothing is decompressed
        for record in records(batch): ...
    write(Batch(codec="gzip"), [Record(value=b"text")]) -> bytes

A Fetch is answered up to its maximum of bytes: a batch that the broker cut is left out, and begins at
valid_bytes(data). Control records are read by klamm.decoders.payloads.control_record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct, error

from klamm.decoders.records import legacy as records_legacy
from klamm.decoders.records import v2 as records_v2
from klamm.decoders.records.codecs import MissingCodec, uncounted
from klamm.decoders.records.shapes import (
    CODECS,
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    UNKNOWN,
    Batch,
    Record,
    RecordsError,
)

__all__ = [
    "CODECS", "CREATE_TIME", "LIMIT", "LOG_APPEND_TIME", "NO_TIMESTAMP", "UNKNOWN",
    "Batch", "MissingCodec", "Record", "RecordsError", "batches", "records", "spans", "valid_bytes", "write",
]  # fmt: skip

LIMIT = 64 << 20  # bytes
# By magic.
HEADER = records_legacy.header, records_legacy.header, records_v2.header
RECORDS = records_legacy.records, records_legacy.records, records_v2.records
WRITE = records_legacy.write, records_legacy.write, records_v2.write
LEAST_SIZES = *records_legacy.LEAST_SIZES, records_v2.LEAST_SIZE
SIZE = Struct(">i")
SIZE_AT, MAGIC_AT = 8, 16  # the same in all formats


def batches(data: bytes) -> Iterator[Batch]:
    """The batches of a records field. Raises RecordsError."""
    for start, end, magic in spans(data, 0, len(data)):
        yield HEADER[magic](data, start, end)


def valid_bytes(data: bytes) -> int:
    """The end of the last whole batch. Raises RecordsError."""
    return max((end for _, end, _ in spans(data, 0, len(data))), default=0)


def spans(data: bytes, pos: int, there: int) -> Iterator[tuple[int, int, int]]:
    """Start, end and magic of each whole batch of the records field that is data[pos:there]. Raises
    RecordsError.
    """
    while there - pos > MAGIC_AT:
        (size,) = SIZE.unpack_from(data, pos + SIZE_AT)
        magic, end = data[pos + MAGIC_AT], pos + SIZE_AT + SIZE.size + size
        if magic >= len(LEAST_SIZES):
            raise RecordsError(f"magic {magic}; known are 0, 1 and 2", pos)
        if end < pos + LEAST_SIZES[magic]:
            raise RecordsError(f"a size of {size}, too small for magic {magic}", pos)
        if end > there:
            return
        yield pos, end, magic
        pos = end


def records(
    batch: Batch,
    limit: int = LIMIT,
    most_headers: int = LIMIT,
    decompressed: Callable[[int], None] = uncounted,
) -> Iterator[Record]:
    """The records of a batch that was read, of at most `limit` bytes when decompressed, with at most so many
    headers each. `decompressed` is told the bytes as they come, and may raise. The caller looks at
    `batch.crc_ok`, or does not. Raises RecordsError, at once or on the way, and MissingCodec.
    """
    try:
        return RECORDS[batch.magic](batch, limit, most_headers, decompressed)
    except RecordsError as wrong:
        raise RecordsError(wrong.reason, batch.start) from wrong


def write(batch: Batch, records: Iterable[Record]) -> bytes:
    """A batch of these records, in order of their offsets. Sizes, counts and checksums are made anew; what is
    UNKNOWN is taken from the records. Without a codec, magic 0 and 1 give one message for each record.

    Raises RecordsError where the format cannot carry them; MissingCodec.
    """
    if not 0 <= batch.magic < len(LEAST_SIZES):
        raise RecordsError(f"magic {batch.magic}; known are 0, 1 and 2")
    try:
        return WRITE[batch.magic](batch, list(records))
    except error as reason:
        raise RecordsError(f"a number does not fit: {reason}") from reason
