"""Blanks or hashes the contents of records in place, so that lengths and layouts stay.

Headers of batches and of messages stay in all cases: sizes, counts, offsets, timestamps, producers, codecs.

Blanked: all that follows the header of a batch of magic 2, compressed or not; keys and values of messages of
magic 0 and 1, whose lengths stay. The checksums stay too, and so are not those of what is kept.

Hashed, in what is not compressed: keys, values, and names and values of headers, each replaced at its length
by its keyed hash (BLAKE2b, up to 32 bytes; behind it zeros; nulls stay). Equal ones stay equal; short ones,
of a few bytes, may become equal. Checksums are made anew. Compressed batches are blanked: hashes, which do
not compress, would not fit. So is a batch that cannot be read, or not be written again at its length. The
ends of transactions stay.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from struct import Struct

from msgspec.structs import replace

from klamm.captures.streams.cutting import Edit
from klamm.decoders.records import (
    HEADER,
    LEAST_SIZES,
    MAGIC_AT,
    SIZE_AT,
    Record,
    RecordsError,
    batches,
    records,
    spans,
    write,
)

LENGTH = Struct(">i")  # of a message's key, of its value
HEADERS = LEAST_SIZES[0] - 2 * LENGTH.size, LEAST_SIZES[1] - 2 * LENGTH.size, LEAST_SIZES[2]  # by magic
BATCH_SIZE = Struct(">i").unpack_from
HASH_BYTES = 32
ATTRIBUTES_AT, CONTROL = 22, 0x20  # of a batch of magic 2: the lower byte, and its bit for control batches
MARKER_BYTES = 84  # a batch with the end of a transaction has 78


def blanked(data: bytes, pos: int, end: int) -> list[Edit]:
    """Blanks the records field data[pos:end]."""
    header = pos + HEADERS[2]
    if (
        end > header
        and data[pos + MAGIC_AT] == 2
        and BATCH_SIZE(data, pos + SIZE_AT)[0] == end - pos - SIZE_AT - LENGTH.size
    ):
        return [(header, end, None)]
    return _edits(data, pos, end, _without_content)


def hashed(data: bytes, pos: int, end: int, key: bytes) -> list[Edit]:
    """`key`: up to 64 bytes."""

    def edits(data: bytes, start: int, stop: int, magic: int) -> list[Edit]:
        if magic == 2 and data[start + ATTRIBUTES_AT] & CONTROL and stop - start <= MARKER_BYTES:
            return []  # the end of a transaction: Kafka's own, and clients fail on any other
        new = _with_hashes(data[start:stop], key)
        return _without_content(data, start, stop, magic) if new is None else [(start, stop, new)]

    return _edits(data, pos, end, edits)


def _edits(
    data: bytes, pos: int, end: int, edits_of: Callable[[bytes, int, int, int], list[Edit]]
) -> list[Edit]:
    """The edits of all batches. A batch that is cut short keeps its header; bytes that are no batch keep
    nothing. Behind a batch whose checksum is wrong nothing is kept: its size may be too small, and then
    content stands where the header of the next should be.
    """
    edits: list[Edit] = []
    try:
        for start, stop, magic in spans(data, pos, end):
            edits += edits_of(data, start, stop, magic)
            pos = stop
            if stop < end and not HEADER[magic](data, start, stop).crc_ok:
                return [*edits, (pos, end, None)]
    except RecordsError:
        return [*edits, (pos, end, None)]
    if end - pos > MAGIC_AT:
        pos += HEADERS[data[pos + MAGIC_AT]]
    else:
        pos = end
    return [*edits, (pos, end, None)] if pos < end else edits


def _without_content(data: bytes, start: int, stop: int, magic: int) -> list[Edit]:
    pos = start + HEADERS[magic]
    if magic == 2:
        return [(pos, stop, None)] if pos < stop else []
    edits: list[Edit] = []
    for _ in ("key", "value"):
        (size,) = LENGTH.unpack_from(data, pos) if stop - pos >= LENGTH.size else (-2,)
        pos += LENGTH.size
        if not -1 <= size <= stop - pos:
            break
        if size > 0:
            edits.append((pos, pos + size, None))
            pos += size
    return edits if pos == stop else [(start + HEADERS[magic], stop, None)]


def _with_hashes(data: bytes, key: bytes) -> bytes | None:
    """A batch of the same length; None where that is not possible."""
    try:
        (batch,) = batches(data)
        if batch.codec != "none":
            return None
        new = write(batch, [_hashed(record, key) for record in records(batch)])
    except RecordsError:
        return None
    return new if len(new) == len(data) else None


def _hashed(record: Record, key: bytes) -> Record:
    headers = tuple((_hashed_name(name, key), _hash(value, key)) for name, value in record.headers)
    return replace(record, key=_hash(record.key, key), value=_hash(record.value, key), headers=headers)


def _hash(data: bytes | None, key: bytes) -> bytes | None:
    if not data:
        return data
    size = min(len(data), HASH_BYTES)
    return blake2b(data, digest_size=size, key=key).digest() + bytes(len(data) - size)


def _hashed_name(name: str, key: bytes) -> str:
    """Text again, of as many bytes."""
    data = name.encode("utf-8", "surrogateescape")
    digest = blake2b(data, digest_size=HASH_BYTES, key=key).hexdigest()
    return digest[: len(data)].ljust(len(data), "0")
