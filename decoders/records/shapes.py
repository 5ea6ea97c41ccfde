"""Batches and records of all formats, and their errors."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import msgspec
from crc32c import crc32c

CODECS = "none", "gzip", "snappy", "lz4", "zstd", "codec 5", "codec 6", "codec 7"  # by id
UNKNOWN = -1  # an unknown offset, count or timestamp; `write` takes it from the records

# Kafka's names of a timestamp's type; messages of magic 0 have no timestamp.
NO_TIMESTAMP, CREATE_TIME, LOG_APPEND_TIME = "NoTimestampType", "CreateTime", "LogAppendTime"

# Of a batch's attributes.
CODEC_BITS, LOG_APPEND_BIT, TRANSACTIONAL_BIT, CONTROL_BIT = 7, 8, 16, 32
DELETE_HORIZON_BIT = 64  # KIP-534


class RecordsError(ValueError):
    """Bytes that are not the records they claim to be, or records that the format cannot carry.

    `offset` counts from the start of the bytes given; None where values were to be written.
    """

    def __init__(self, reason: str, offset: int | None = None) -> None:
        self.reason, self.offset = reason, offset
        super().__init__(reason if offset is None else f"records at byte {offset}: {reason}")


class Record(msgspec.Struct, frozen=True, gc=False):  # thrice as fast to make as a NamedTuple
    """`timestamp` is in ms since 1970, -1 for none. Headers (KIP-82) are a name and a value each."""

    offset: int = 0
    timestamp: int = -1
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Batch(NamedTuple):
    """A record batch (magic 2), or a message of a message set (magic 0, 1), which holds others if compressed.

    Of a compressed message `base_offset` and `record_count` are unknown before it is decompressed. Where it
    `has_delete_horizon`, `base_timestamp` tells when tombstones and markers may go. It is data[start:end].
    """

    magic: int = 2
    base_offset: int = UNKNOWN
    last_offset: int = UNKNOWN
    record_count: int = UNKNOWN
    codec: str = "none"
    timestamp_type: str = CREATE_TIME
    base_timestamp: int = UNKNOWN
    max_timestamp: int = UNKNOWN
    is_transactional: bool = False
    is_control: bool = False
    has_delete_horizon: bool = False
    partition_leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    crc: int = 0
    data: bytes = b""
    start: int = 0
    end: int = 0

    @property
    def size(self) -> int:
        """In bytes, headers included."""
        return self.end - self.start

    @property
    def crc_ok(self) -> bool:
        """Whether the checksum fits the bytes. Reads all of them."""
        if self.magic == 2:
            return crc32c(memoryview(self.data)[self.start + 21 : self.end]) == self.crc
        return zlib.crc32(memoryview(self.data)[self.start + 16 : self.end]) == self.crc

    def __repr__(self) -> str:
        """All but the bytes."""
        told = zip(self._fields, self, strict=True)
        return f"Batch({', '.join(f'{name}={value!r}' for name, value in told if name != 'data')})"
