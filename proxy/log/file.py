"""The log's file: it is opened anew where another file, or none, has its path, as after logrotate."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LOOK_S = 1.0  # between two looks at the path
NEWLINE = b"\n"
COUNTED = "those that it does not take are counted in klamm_log_lines_dropped_total"


class LogFile:
    """Raises OSError where it cannot be opened first, and from `write`. What fails is said on standard error
    too, once of each kind: the log cannot say it.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._file = path.open("ab", buffering=0)
        self._is_regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)  # a pipe is not rotated
        self._look_at_s = clock() + LOOK_S
        self._cut = False  # the last line in the file has no end
        self._said: set[str] = set()

    def isatty(self) -> bool:
        return self._file.isatty()

    def write(self, data: bytes) -> None:
        """Whole lines."""
        if self._is_regular and self._clock() >= self._look_at_s:
            self._look_at_s = self._clock() + LOOK_S
            self._follow()
        rest = memoryview(NEWLINE + data if self._cut else data)
        try:
            while rest:
                written = self._file.write(rest) or 0
                self._cut = rest[written - 1 : written] != NEWLINE if written else self._cut
                rest = rest[written:]
        except OSError as error:
            self._say("takes no lines", error, COUNTED)
            raise

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self._file.close()

    def _follow(self) -> None:
        """To the file that has the path by now."""
        try:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno())):
                    return
            opened = self._path.open("ab", buffering=0)
        except OSError as error:
            self._say("cannot be opened anew", error, "lines go to the file of before")
            return
        before, self._file, self._cut = self._file, opened, False
        before.close()

    def _say(self, what: str, error: OSError, then: str) -> None:
        if what not in self._said:
            self._said.add(what)
            with suppress(OSError, ValueError):  # standard error may be closed
                sys.stderr.write(f"klamm: the log file {self._path} {what}: {error.strerror}; {then}\n")
                sys.stderr.flush()
