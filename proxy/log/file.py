"""The file of a log. It is opened again if its path leads to another file or to none, as after logrotate."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path

LOOK_S = 1.0  # between two checks of the path
NEWLINE = b"\n"
COUNTED = "those that it does not take are counted in klamm_log_lines_dropped_total"


def _opened(path: Path) -> FileIO:
    """To write at its end; for its owner only where it is made, as lines name clients and topics."""
    return FileIO(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))


class LogFile:
    """The first opening and `write` raise OSError. Failures are also printed on standard error, once of each
    kind, because the log cannot have them.
    """

    def __init__(
        self,
        path: Path,
        clock: Callable[[], float] = time.monotonic,
        name: str = "log file",
        counted: str = COUNTED,
    ) -> None:
        self._path, self._clock, self._name, self._counted = path, clock, name, counted
        self._file = _opened(path)
        self._is_regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)  # a pipe is not rotated
        self._look_at_s = clock() + LOOK_S
        self._cut = False  # the last line in the file has no end
        self._printed: set[str] = set()

    def isatty(self) -> bool:
        return self._file.isatty()

    def write(self, data: bytes) -> None:
        """Write whole lines. Raises OSError."""
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
            self._say("takes no lines", error, self._counted)
            raise

    def flush(self) -> None:
        """Nothing to do: the file is not buffered."""

    def close(self) -> None:
        self._file.close()

    def _follow(self) -> None:
        """Open the file that the path leads to now, if it is another one."""
        try:
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(self._path), os.fstat(self._file.fileno())):
                    return
            opened = _opened(self._path)
        except OSError as error:
            self._say("cannot be opened anew", error, "lines go to the file of before")
            return
        before, self._file, self._cut = self._file, opened, False
        before.close()

    def _say(self, what: str, error: OSError, then: str) -> None:
        if what not in self._printed:
            self._printed.add(what)
            with suppress(OSError, ValueError):  # standard error may be closed
                sys.stderr.write(f"klamm: the {self._name} {self._path} {what}: {error.strerror}; {then}\n")
                sys.stderr.flush()
