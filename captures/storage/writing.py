"""Rows to a folder of segments: each ended at a size or an age, and given its name only when it is whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from klamm.captures.captured import Captured
from klamm.captures.storage.growing import Growing, Open, begin, open_new
from klamm.captures.storage.leftovers import seal_leftovers
from klamm.captures.storage.segments import GROWING, NAME, SEALED, Origin, growing_path, name
from klamm.captures.storage.stored import stored

BATCH_ROWS = 2048
BATCH_BYTES = 1 << 20
FLUSH_S = 0.5  # the longest that a row waits for others


class Limits(NamedTuple):
    """The size and age at which a segment ends, and those at which segments are deleted. None: no limit."""

    segment_bytes: int = 64 << 20
    segment_s: float = 300.0
    keep_bytes: int | None = None  # of sealed segments in the folder, the oldest are deleted first
    keep_s: float | None = None  # since they were sealed


DEFAULT = Limits()
BODIES = itemgetter(Captured._fields.index("frame"), Captured._fields.index("forwarded"))


class Writer:
    """Raises OSError, from any method; then `abandon` the segment and write on: that begins another.

    Left-over segments of runs that were killed are sealed before the first of its own begins.
    """

    def __init__(
        self,
        folder: Path,
        origin: Origin,
        limits: Limits = DEFAULT,
        open_file: Open = open_new,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self.origin, self.limits = folder, origin, limits
        self.sealed = self.written_bytes = 0
        self._open_file, self._clock, self._number = open_file, clock, 0
        self._rows: list[Captured] = []
        self._bytes = 0
        self._oldest_s = self._began_s = 0.0
        self._segment: Growing | None = None

    def write(self, rows: Sequence[Captured]) -> None:
        """Rows whose frames are cut. On the disk half a second later, or with the next full batch."""
        if not self._rows and rows:
            self._oldest_s = self._clock()
        self._rows += rows
        self._bytes += bytes_in(rows)
        if self._bytes >= BATCH_BYTES or len(self._rows) >= BATCH_ROWS:
            self.flush()

    def due_s(self) -> float | None:
        """The time at which `tick` is wanted; None: when there are rows."""
        ends = [self._oldest_s + FLUSH_S] if self._rows else []
        ends += [self._began_s + self.limits.segment_s] if self._segment else []
        return min(ends, default=None)

    def tick(self) -> None:
        """Do what is due by now."""
        now = self._clock()
        if self._rows and now >= self._oldest_s + FLUSH_S:
            self.flush()
        if self._segment and now >= self._began_s + self.limits.segment_s:
            self.seal()

    def flush(self) -> None:
        """Writes the waiting rows as a batch. A full segment is sealed."""
        if not self._rows:
            return
        if self._segment is None:
            self._segment = self._begin()
        before = self._segment.size_bytes
        self._segment.write(self._rows)
        self.written_bytes += self._segment.size_bytes - before
        self._rows, self._bytes, self._oldest_s = [], 0, self._clock()
        if self._segment.size_bytes >= self.limits.segment_bytes:
            self.seal()

    def seal(self) -> None:
        """End the segment, if there is one."""
        self.flush()
        if self._segment is None:
            return
        self._segment.seal()
        self._segment = None
        self.sealed += 1
        delete_old(self.folder, self.limits)

    def abandon(self) -> tuple[int, int]:
        """Give up what waits, and the segment as it is. How many frames are lost by that, and how many that
        had been said to be lost.
        """
        frames, lost = frames_in(self._rows), lost_in(self._rows)
        self._rows, self._bytes = [], 0
        if self._segment is not None:
            if not self._segment.is_there():
                frames += sum(self._segment.statistics.frames.values())
                lost += self._segment.statistics.lost
            with suppress(OSError):
                self._segment.abandon()
            self._segment = None
        return frames, lost

    def _begin(self) -> Growing:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sealed += seal_leftovers(self.folder, self.origin.capture)
        path = self._next()
        while path.exists():
            path = self._next()
        segment = begin(growing_path(path), self.origin, self._open_file)
        self._began_s = self._clock()
        return segment

    def _next(self) -> Path:
        self._number += 1
        return self.folder / name(self.origin, self._number, time.time())


def write_file(path: Path, rows: Iterable[Captured], origin: Origin) -> int:
    """Writes all rows as one segment of this name, which is there when it is whole. Returns the number of
    rows.
    """
    growing = path.with_name(f".{path.name}{GROWING}")
    growing.unlink(missing_ok=True)
    segment = begin(growing, origin)
    try:
        waiting: list[Captured] = []
        bytes_waiting = 0
        for row in rows:
            waiting.append(stored(row))
            bytes_waiting += bytes_in(waiting[-1:])
            if len(waiting) >= BATCH_ROWS or bytes_waiting >= BATCH_BYTES:
                segment.write(waiting)
                waiting, bytes_waiting = [], 0
        if waiting:
            segment.write(waiting)
        segment.seal(path)
    except BaseException:
        segment.abandon()
        growing.unlink(missing_ok=True)
        raise
    return segment.statistics.rows


def bytes_in(rows: Iterable[Captured]) -> int:
    """The bytes of the frames, as they are stored."""
    return sum(map(len, filter(None, chain.from_iterable(map(BODIES, rows)))))


def frames_in(rows: Iterable[Captured]) -> int:
    return sum(row.kind == "frame" or row.kind == "token" for row in rows)


def lost_in(rows: Iterable[Captured]) -> int:
    """The number of frames that are reported as lost."""
    return sum(row.lost for row in rows)


def delete_old(folder: Path, limits: Limits) -> None:
    """Sealed segments over the limits, the oldest first. Other files stay, whatever their size."""
    if limits.keep_bytes is None and limits.keep_s is None:
        return
    found = []
    for path in folder.glob(f"*{SEALED}"):
        if NAME.fullmatch(path.name):
            with suppress(OSError):
                found.append((path.name, path.stat()))
    total, now = sum(stat.st_size for _, stat in found), time.time()
    for segment, stat in sorted(found):
        over = limits.keep_bytes is not None and total > limits.keep_bytes
        old = limits.keep_s is not None and now - stat.st_mtime > limits.keep_s
        if over or old:
            total -= stat.st_size
            with suppress(OSError):
                (folder / segment).unlink()
