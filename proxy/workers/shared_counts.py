"""Counts in memory that several processes share, so that `times: 3` means three times in all of them.

A table in a file without a name: pairs of a key's hash and a count, both 8 bytes. A lock of the file is held
for a microsecond at each count; the system gives it back where a process dies with it.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from struct import Struct
from typing import Final

from klamm.rules.actions.quota import SAMPLES

SLOTS: Final = 1 << 16
FULL: Final = SLOTS * 3 // 4  # keys; beyond it all are forgotten and counted anew, as in one process
PAIR, USED = Struct("=Qq"), Struct("=Q")
SIZE: Final = USED.size + SLOTS * PAIR.size
HASH: Final = (1 << 64) - 1
FIRST = "first match"
NONE: Final = 0x1F3A5C7E9B2D4F61
UNITS: Final = 1 << 40  # beyond those of one sample


def make_table() -> int:
    """An open file for it, which other processes may inherit."""
    file = os.memfd_create("klamm-counts")
    os.ftruncate(file, SIZE)
    os.set_inheritable(file, True)
    return file


@contextmanager
def locked(file: int, byte: int) -> Iterator[None]:
    """Hold the lock of a byte of the file. The threads of one process do not exclude each other."""
    fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


def log_lock(file: int) -> AbstractContextManager[None]:
    """Held while lines are written to the log, so that those of several processes do not mix in a pipe."""
    return locked(file, SIZE)


class Table:
    """The table of an open file."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.memory = mmap.mmap(file, SIZE)

    def _locked(self) -> AbstractContextManager[None]:
        return locked(self.file, 0)

    def add(self, key: Hashable, more: int) -> int:
        """Add to the count of a key; gives it as it is then."""
        with self._locked():
            count = self._get(key)
            if more:
                self._put(key, count + more)
            return count + more

    def add_in(self, key: Hashable, number: int, more: int) -> int:
        """The same in the sample of this number; a key has one sample at a time, the newest."""
        with self._locked():
            before, count = divmod(self._get(key), UNITS)
            if before != number:
                count = 0
            if more:
                self._put(key, number * UNITS + min(count + more, UNITS - 1))
            return count + more

    def set_first(self, key: Hashable, value: int) -> int:
        """Note a value for a key that has none. Gives the one that it has."""
        with self._locked():
            before = self._get(key)
            if not before:
                self._put(key, value)
            return before or value

    def _get(self, key: Hashable) -> int:
        """The count of a key; 0 if it has none."""
        at, found = self._place(_hash(key))
        return int(PAIR.unpack_from(self.memory, at)[1]) if found else 0

    def _put(self, key: Hashable, count: int) -> None:
        wanted = _hash(key)
        at, found = self._place(wanted)
        (used,) = USED.unpack_from(self.memory)
        if not found and used >= FULL:
            self.memory[:] = bytes(SIZE)
            at, used = self._place(wanted)[0], 0
        USED.pack_into(self.memory, 0, used + (not found))
        PAIR.pack_into(self.memory, at, wanted, count)

    def _place(self, wanted: int) -> tuple[int, bool]:
        """Where a key is, or is to be put."""
        slot = wanted % SLOTS
        while True:
            at = USED.size + slot * PAIR.size
            (found,) = USED.unpack_from(self.memory, at)
            if found in (wanted, 0):
                return at, found == wanted
            slot = (slot + 1) % SLOTS


class RuleCounts:
    """The counts of one rule since `started_ns`. Implements SharedCounts of rules/state.py, and
    SharedSamples of rules/actions/quota.py.
    """

    def __init__(self, table: Table, rule: str, started_ns: int) -> None:
        self.table, self.of = table, (rule, started_ns)

    def add(self, what: Hashable, more: int) -> int:
        return self.table.add((self.of, what), more)

    def first(self, now: int) -> int:
        return self.table.set_first((self.of, FIRST), now)

    def add_in(self, what: Hashable, number: int, more: int) -> int:
        return self.table.add_in((self.of, what, number % (SAMPLES + 1)), number, more)


def _hash(key: Hashable) -> int:
    """Never 0, which is an empty place; and the same in all processes of one PYTHONHASHSEED."""
    return (hash(_without_none(key)) & HASH) or 1


def _without_none(key: Hashable) -> Hashable:
    """The hash of None is an address, and differs between processes."""
    if isinstance(key, tuple):
        return tuple(map(_without_none, key))
    return NONE if key is None else key
