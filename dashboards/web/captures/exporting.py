"""Makes files of exports in a thread, one at a time, and keeps the newest for as long as the server runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec import Struct

from klamm.captures.choosing import TELL_S
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.captures.exports import Form, Made, TooLarge, Wanted, export

KEPT = 3  # files
MEDIA: dict[Form, str] = {
    "jsonl": "application/jsonl",
    "pcapng": "application/x-pcapng",
    "arrow": "application/vnd.apache.arrow.file",
}


class File(NamedTuple):
    path: Path
    name: str
    media: str


class Progress(Struct, frozen=True, omit_defaults=True):
    """How far it is. In the end `file`, the path from which it can be fetched under this `name`, and `notes`;
    or `problem`, why there is none.
    """

    exchanges: int = 0
    bytes: int = 0
    file: str = ""
    name: str = ""
    notes: list[str] = []
    problem: str = ""


class Stopped(Exception):
    """The page does not want the file any more."""


class Exporting:
    """`files`: by the last part of their paths."""

    def __init__(self, source: Captures) -> None:
        self.source, self.files = source, dict[str, File]()
        self._folder: TemporaryDirectory[str] | None = None
        self._numbers = count(1)
        self._work: _Work | None = None

    async def make(self, wanted: Wanted) -> AsyncGenerator[Progress, None]:
        """Ends the work where the caller closes it."""
        if self._work is not None:
            yield Progress(problem="another file is made now: wait for its end")
            return
        number = str(next(self._numbers))
        file = File(self._place(number), f"exchanges.{wanted.form}", MEDIA[wanted.form])
        work = self._work = _Work(self.source, wanted, file.path)
        task = asyncio.create_task(asyncio.to_thread(work.carry_out))
        task.add_done_callback(lambda task: self._ended(work, task))
        try:
            while not (await asyncio.wait({task}, timeout=TELL_S))[0]:
                yield Progress(work.exchanges, work.bytes)
            self._ended(work, task)  # the callback may come later
            yield self._result(task, number, file)
        finally:
            work.stopped = True

    def close(self) -> None:
        """The server ends."""
        if self._work is not None:
            self._work.stopped = True
        if self._folder is not None:
            self._folder.cleanup()

    def _place(self, number: str) -> Path:
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="klamm-web-", ignore_cleanup_errors=True)
        return Path(self._folder.name) / number

    def _ended(self, work: _Work, task: asyncio.Task[Made]) -> None:
        if self._work is work:
            self._work = None
        if not task.cancelled():
            task.exception()  # of a page that has gone, nobody asks for it

    def _result(self, task: asyncio.Task[Made], number: str, file: File) -> Progress:
        try:
            made = task.result()
        except TooLarge as wrong:
            return Progress(problem=str(wrong))
        except OSError as wrong:
            return Progress(problem=f"the file cannot be written: {wrong.strerror or wrong}")
        self.files[number] = file
        while len(self.files) > KEPT:
            self.files.pop(next(iter(self.files))).path.unlink(missing_ok=True)
        return Progress(made.exchanges, made.bytes, f"/api/exports/{number}", file.name, made.notes)


class _Work:
    """One export. `stopped` is set from outside."""

    def __init__(self, source: Captures, wanted: Wanted, path: Path) -> None:
        self.source, self.wanted, self.path = source, wanted, path
        self.exchanges = self.bytes = 0
        self.stopped = False

    def carry_out(self) -> Made:
        """In a thread. Raises what `export` raises, and Stopped."""
        try:
            return export(self.source, self.wanted, self.path, self._tell)
        except BaseException:
            self.path.unlink(missing_ok=True)
            raise

    def _tell(self, exchanges: int, size: int) -> None:
        if self.stopped:
            raise Stopped
        self.exchanges, self.bytes = exchanges, size
