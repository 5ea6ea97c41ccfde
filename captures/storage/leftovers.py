"""Segments of runs that were killed, or whose disk failed: sealed where they are, before another begins."""

from __future__ import annotations

import fcntl
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from klamm.captures.captured import Captured
from klamm.captures.storage.arrow.messages import BATCH, DICTIONARY, SCHEMA, Block, messages
from klamm.captures.storage.growing import Before, Growing
from klamm.captures.storage.segments import (
    GROWING,
    NAME,
    Damaged,
    Newer,
    Origin,
    Statistics,
    origin_of,
    summary_of,
)

CUT = "the capture ends abruptly: its last moments may be missing"  # a kill, or a disk that failed to the end
EMPTY_BYTES = 64 << 10  # up to here, a file without a whole batch is deleted


def seal_leftovers(folder: Path, own: str = "") -> int:
    """Seals the segments that no process writes any more. Their whole batches stay, and a row says that
    frames are lost; segments of the capture `own` get no such row, since it tells of the loss itself. A
    segment that cannot be sealed now is left for another time. Gives the number of those of `own` that are
    sealed now.
    """
    sealed = 0
    for path in sorted(folder.glob(f"*{GROWING}")):
        if NAME.fullmatch(path.name):
            with suppress(OSError), open(path, "r+b", buffering=0) as file:
                if _is_left(file.fileno()) and os.path.samestat(os.stat(path), os.fstat(file.fileno())):
                    sealed += _seal(path, file, own)
    return sealed


def _is_left(descriptor: int) -> bool:
    """Locks the file, unless it is locked by who writes it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _seal(path: Path, file: BinaryIO, own: str) -> bool:
    """Is it sealed now, and of the capture `own`?"""
    size = os.fstat(file.fileno()).st_size
    if size:
        try:
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                origin, before = _before(data)
        except (Newer, Damaged, KeyError):
            return False  # nothing that this klamm has written
        if before.batches:
            file.seek(before.size_bytes)
            segment = Growing(path, origin, file, before)
            cut = origin.capture != own
            if cut:
                segment.write([Captured(before.statistics.last_ns, "lost", text=CUT)])
            file.truncate()  # the beginning of a batch
            segment.seal(cut=cut)
            return not cut
    if size <= EMPTY_BYTES:
        path.unlink()
    return False


def _before(data: mmap.mmap) -> tuple[Origin, Before]:
    """The file up to its last whole batch."""
    origin = None
    before = Before([], [], Statistics(), [], 0)
    waiting: list[Block] = []
    for kind, block, metadata in messages(data):
        if kind == SCHEMA:
            origin = origin_of(metadata)
        elif kind == DICTIONARY:
            waiting.append(block)
        elif kind == BATCH:
            try:
                summary = summary_of(metadata)
            except (Damaged, KeyError):
                break
            before.statistics.add(summary)
            before.dictionaries.extend(waiting)
            before.batches.append(block)
            end = block.at + block.head_bytes + block.body_bytes
            before, waiting = before._replace(texts=summary.texts, size_bytes=end), []
    if origin is None:
        raise Damaged("nothing is whole in it")
    return origin, before
