"""Compressed records: what comes out never takes more memory than was allowed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from io import BytesIO
from struct import Struct
from typing import Any

import lz4.frame

from klamm.decoders.records.shapes import RecordsError
from klamm.settings.extras import installing

PIECE = 1 << 16
INT32 = Struct(">i")
XERIAL = b"\x82SNAPPY\0" + bytes([0, 0, 0, 1, 0, 0, 0, 1])  # the framing of snappy-java, as Kafka writes it
XERIAL_BLOCK = 1 << 15
SNAPPY_RATIO = 24  # three bytes can stand for 64, no more
ZSTD_WINDOW = 1 << 27  # the largest window that Kafka accepts


class MissingCodec(ImportError):
    """A codec's package is not installed."""


def uncounted(size: int) -> None:
    """Nobody is told how many bytes are decompressed."""


def decompress(
    codec: str, data: bytes, limit: int, magic: int = 2, decompressed: Callable[[int], None] = uncounted
) -> bytes:
    """`decompressed` is told the bytes as they come, and may raise. Raises RecordsError for wrong bytes, and
    for such that yield more than `limit`; MissingCodec.
    """
    if codec not in READERS:
        raise RecordsError(f"compressed with {codec}, which is none of {', '.join(READERS)}")
    if codec == "lz4" and magic == 0:
        data = _lz4_checked(data, start=4)
    out = BytesIO()
    try:
        for piece in READERS[codec](data, limit):
            if out.tell() + len(piece) > limit:
                raise RecordsError(f"{codec} yields more than {limit:,} bytes")
            decompressed(len(piece))
            out.write(piece)
    except (OSError, EOFError, RuntimeError, zlib.error) as reason:
        raise RecordsError(f"wrong {codec}: {reason}") from reason
    return out.getvalue()


def compress(codec: str, data: bytes, magic: int = 2) -> bytes:
    """Compresses as Kafka's own clients do. Raises RecordsError where this magic has no such codec;
    MissingCodec.
    """
    if codec not in WRITERS or (codec == "zstd" and magic < 2):
        raise RecordsError(f"records of magic {magic} cannot be compressed with {codec}")
    written = WRITERS[codec](data)
    return _lz4_checked(written, start=0) if codec == "lz4" and magic == 0 else written


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as missing:
        raise MissingCodec(f"{name} is not installed; run: {installing('records')}") from missing


def _gzip_pieces(data: bytes, _: int) -> Iterator[bytes]:
    return iter(partial(gzip.GzipFile(fileobj=BytesIO(data)).read, PIECE), b"")


def _lz4_pieces(data: bytes, _: int) -> Iterator[bytes]:
    return iter(partial(lz4.frame.LZ4FrameFile(BytesIO(data)).read, PIECE), b"")


def _zstd_pieces(data: bytes, _: int) -> Iterator[bytes]:
    zstandard = _package("zstandard")
    decompressor = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW)
    reader = decompressor.stream_reader(data, read_across_frames=True)
    try:
        while piece := reader.read(PIECE):
            yield piece
    except zstandard.ZstdError as reason:
        raise RecordsError(f"wrong zstd: {reason}") from reason


def _snappy_pieces(data: bytes, limit: int) -> Iterator[bytes]:
    """Raw, or in blocks behind xerial's header, of which only the name counts: some write another version."""
    cramjam = _package("cramjam")
    for block in _xerial_blocks(data) if data[:8] == XERIAL[:8] else [data]:
        try:
            size = cramjam.snappy.decompress_raw_len(block)
            if size > SNAPPY_RATIO * len(block):
                raise RecordsError(f"wrong snappy: {len(block)} bytes announce {size:,}")
            if size > limit:
                raise RecordsError(f"snappy yields more than {limit:,} bytes")
            yield bytes(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as reason:
            raise RecordsError(f"wrong snappy: {reason}") from reason


def _xerial_blocks(data: bytes) -> Iterator[bytes]:
    pos = len(XERIAL)
    while pos < len(data):
        start = pos + INT32.size
        size = int.from_bytes(data[pos:start], "big", signed=True)
        pos = start + size
        if size < 0 or pos > len(data):
            raise RecordsError(f"wrong snappy: a block of {size:,} bytes, {max(0, len(data) - start):,} left")
        yield data[start:pos]


def _snappy(data: bytes) -> bytes:
    block = _package("cramjam").snappy.compress_raw
    blocks = (bytes(block(data[at : at + XERIAL_BLOCK])) for at in range(0, len(data), XERIAL_BLOCK))
    return XERIAL + b"".join(INT32.pack(len(block)) + block for block in blocks)


def _lz4(data: bytes) -> bytes:
    """Independent blocks of 64 KiB and no size in front: old brokers read no other."""
    whole: bytes = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return whole


def _lz4_checked(frame: bytes, start: int) -> bytes:
    """Set the header's checksum, which should be taken from byte 4 on. Messages of magic 0 have it from 0 on,
    as the first clients did it (KAFKA-3160); brokers of their time insist.
    """
    flags = frame[4] if len(frame) > 4 else 0
    end = 6 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)  # with a size, with a dictionary
    return frame[:end] + bytes([_xxh32_short(frame[start:end]) >> 8 & 0xFF]) + frame[end + 1 :]


def _xxh32_short(data: bytes) -> int:
    """XXH32 of fewer than 16 bytes, seed 0."""
    value = 0x165667B1 + len(data)
    for at in range(0, len(data) & ~3, 4):
        value += int.from_bytes(data[at : at + 4], "little") * 0xC2B2AE3D
        value = _rotated(value, 17) * 0x27D4EB2F
    for byte in data[len(data) & ~3 :]:
        value = _rotated(value + byte * 0x165667B1, 11) * 0x9E3779B1
    value &= 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return value ^ value >> 16


def _rotated(value: int, by: int) -> int:
    value &= 0xFFFFFFFF
    return value << by | value >> 32 - by


def _zstd(data: bytes) -> bytes:
    written: bytes = _package("zstandard").ZstdCompressor().compress(data)
    return written


READERS: dict[str, Callable[[bytes, int], Iterator[bytes]]] = {
    "gzip": _gzip_pieces, "snappy": _snappy_pieces, "lz4": _lz4_pieces, "zstd": _zstd_pieces,
}  # fmt: skip
WRITERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": partial(gzip.compress, mtime=0), "snappy": _snappy, "lz4": _lz4, "zstd": _zstd,
}  # fmt: skip
