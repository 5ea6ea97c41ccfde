"""The sealed segments of a folder, and a tar of them, piece by piece."""

from __future__ import annotations

import os
import re
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from klamm.captures.storage.segments import NAME, SEALED

PIECE_BYTES = 64 << 10
FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Sealed(NamedTuple):
    """`time`: when it was sealed, in seconds since 1970."""

    name: str
    bytes: int
    time: float


def sealed(folder: Path) -> list[Sealed]:
    """The oldest first; other files, and links, are none. Raises OSError."""
    found = []
    for entry in os.scandir(folder):
        is_named = NAME.fullmatch(entry.name) and entry.name.endswith(SEALED)
        if is_named and entry.is_file(follow_symlinks=False):
            of = entry.stat(follow_symlinks=False)
            found.append(Sealed(entry.name, of.st_size, of.st_mtime))
    return sorted(found)


def archive_name(folder: Path) -> str:
    """The name of the folder within the archive."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", folder.name).lstrip(".") or "capture"


def pieces(folder: Path, segments: Sequence[Sealed]) -> Iterator[bytes]:
    """The bytes of the tar. What was deleted meanwhile is left out. Raises OSError."""
    for segment in segments:
        try:
            descriptor = os.open(folder / segment.name, FLAGS)
        except FileNotFoundError:
            continue
        with open(descriptor, "rb", buffering=0) as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                yield from _member(f"{archive_name(folder)}/{segment.name}", file)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _member(name: str, file: IO[bytes]) -> Iterator[bytes]:
    of = os.fstat(file.fileno())
    head = tarfile.TarInfo(name)
    head.size, head.mtime, head.mode = of.st_size, int(of.st_mtime), 0o600
    yield head.tobuf(tarfile.GNU_FORMAT)
    left = of.st_size
    while left:
        piece = file.read(min(PIECE_BYTES, left))
        if not piece:
            raise OSError(f"{name} became shorter while it was read")
        left -= len(piece)
        yield piece
    yield bytes(-of.st_size % tarfile.BLOCKSIZE)
