"""Tells whether files have changed since they were read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

Identity = tuple[int, ...] | None  # numbers that change with a file; None: there is no file


class WatchedFiles:
    """`read`: the files as they were before they were read. `before`: identities of some of them that were
    taken earlier.
    """

    def __init__(self, files: Iterable[str], before: Mapping[str, Identity] | None = None) -> None:
        known = before or {}
        self.read = self.seen = {file: known.get(file) or _identity(file) for file in files}

    def changed(self) -> bool:
        """Have the files changed, and not since the last call? Then nobody is writing them."""
        now = identities(self.read)
        settled, self.seen = now == self.seen, now
        return settled and now != self.read


def identities(files: Iterable[str]) -> dict[str, Identity]:
    """Of each file now, or of the target where it is a link."""
    return {file: _identity(file) for file in files}


def _identity(file: str) -> Identity:
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size
