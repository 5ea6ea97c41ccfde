"""A segment that grows: a file that is locked while its process lives."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from klamm.captures.captured import Captured
from klamm.captures.storage.arrow.encoding import Encoding, Message, columns_of, schema
from klamm.captures.storage.arrow.messages import MAGIC, Block, footer, schema_message
from klamm.captures.storage.segments import Origin, Statistics, sealed_path, to_metadata


class Raw(Protocol):
    """An unbuffered file."""

    def write(self, data: memoryview, /) -> int | None: ...
    def fileno(self) -> int: ...
    def close(self) -> None: ...


Open = Callable[[Path], Raw]


def open_new(path: Path) -> Raw:
    """For its owner only, as it holds traffic."""
    return open(path, "xb", buffering=0, opener=_private)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Before(NamedTuple):
    """The contents of a continued file: dictionaries, batches, and how many texts each column knows."""

    dictionaries: list[Block]
    batches: list[Block]
    statistics: Statistics
    texts: list[int]
    size_bytes: int


class Growing:
    """`size_bytes`: of its whole batches. Where a method raises OSError, the file may end within another."""

    def __init__(self, path: Path, origin: Origin, raw: Raw, before: Before | None = None) -> None:
        self.path, self.origin, self._raw = path, origin, raw
        self.size_bytes, self.statistics = 0, Statistics()
        self._schema = schema(to_metadata(origin), origin.format)
        self._encoding = Encoding(before.texts if before else None, origin.format)
        self._dictionaries: list[Block] = []
        self._batches: list[Block] = []
        if before is not None:
            self._dictionaries, self._batches, self.statistics, _, self.size_bytes = before

    def write(self, rows: Sequence[Captured]) -> None:
        """Writes one batch, which is on its way to the disk when this returns. Frames are cut."""
        texts, batch, summary = self._encoding.batch(columns_of(rows))
        self._put([*self._start(), *texts, batch], len(texts))
        self.statistics.add(summary)

    def seal(self, named: Path | None = None, cut: bool = False) -> Path:
        """Writes the statistics and the footer, and gives the file the name of a whole segment."""
        self.statistics.clusters, self.statistics.cut = dict(self.origin.clusters), cut
        texts, nothing = self._encoding.nothing(to_metadata(self.statistics))
        self._put([*self._start(), *texts, nothing], len(texts))
        self._carry([footer(self._schema, self._dictionaries, self._batches)])
        sealed = named or sealed_path(self.path)
        os.rename(self.path, sealed)
        self._raw.close()
        return sealed

    def abandon(self) -> None:
        """Leave it as it is. What whole batches there are can be read, and sealed later."""
        self._raw.close()

    def is_there(self) -> bool:
        """Has nobody removed it?"""
        try:
            named = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(named, os.fstat(self._raw.fileno()))

    def _start(self) -> list[Message]:
        return [] if self.size_bytes else [(MAGIC + schema_message(self._schema), [])]

    def _put(self, messages: Sequence[Message], dictionaries: int) -> None:
        """The last is a batch; before it so many of dictionaries."""
        at, blocks = self.size_bytes, []
        for head, body in messages:
            blocks.append(Block(at, len(head), sum(map(len, body))))
            at += len(head) + blocks[-1].body_bytes
        self._carry([part for head, body in messages for part in (head, *body)])
        self._dictionaries += blocks[-1 - dictionaries : -1]
        self._batches.append(blocks[-1])

    def _carry(self, parts: Sequence[bytes]) -> None:
        if not self.is_there():
            raise FileNotFoundError(errno.ENOENT, "the segment was removed while it grew", str(self.path))
        with memoryview(b"".join(parts)) as data:
            at = 0
            while at < len(data):
                at += self._raw.write(data[at:]) or 0
            self.size_bytes += at


def begin(path: Path, origin: Origin, open_file: Open = open_new) -> Growing:
    """A new segment, locked. Raises OSError.

    Before it is locked, another process may take it for one that a killed run left, and remove it.
    """
    while True:
        segment = Growing(path, origin, raw := open_file(path))
        try:
            fcntl.flock(raw.fileno(), fcntl.LOCK_EX)
        except OSError:  # a file system without locks: left-over segments there cannot be sealed
            return segment
        if segment.is_there():
            return segment
        segment.abandon()
