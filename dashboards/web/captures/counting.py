"""Counts captures for their overview: small ones in a thread, large ones in a process of its own, since a
thread slows down those that answer the page.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress

import msgspec
from msgspec.structs import replace

from klamm.captures.storage.reading import read
from klamm.dashboards.web.captures.overview import Overview, head_of, overviews

COMMAND = (sys.executable, "-m", "klamm.dashboards.web.captures.counting")
LARGE = 64 << 20  # bytes
LONGEST = 16 << 20  # bytes of a line, which has the problems of all files
Files = list[tuple[str, int, int]]


class Overviews:
    """Of captures. Files that have not changed are read once."""

    def __init__(self, paths: Sequence[str], large: int = LARGE, command: Sequence[str] = COMMAND) -> None:
        self._paths, self._large, self._command = paths, large, command
        self._last: tuple[Files, Overview] | None = None

    async def told(self) -> AsyncGenerator[Overview, None]:
        """Ever more of it, until it is whole. Two pages that ask at once count each for itself."""
        files, head = await asyncio.to_thread(self._begin)
        if self._last is not None and self._last[0] == files:
            yield self._last[1]
            return
        yield head
        apart = head.bytes > self._large
        async with aclosing(self._in_a_process(head) if apart else self._in_a_thread()) as found:
            async for each in found:
                yield each
                if each.whole:
                    self._last = files, each

    def _begin(self) -> tuple[Files, Overview]:
        reading = read(self._paths)
        segments = reading.segments()
        return [one.as_it_is() for one in segments], head_of(segments, reading.problems)

    async def _in_a_thread(self) -> AsyncGenerator[Overview, None]:
        found = overviews(self._paths)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def _in_a_process(self, last: Overview) -> AsyncGenerator[Overview, None]:
        process = await asyncio.create_subprocess_exec(
            *self._command, *self._paths,
            stdin=DEVNULL, stdout=PIPE, stderr=PIPE, limit=LONGEST, start_new_session=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async for line in process.stdout:
                last = msgspec.json.decode(line, type=Overview)
                yield last
            if not last.whole:
                said = (await process.stderr.read()).decode("utf-8", "replace").strip()
                why = said.rpartition("\n")[2] or f"exit {await process.wait()}"
                yield replace(last, problem=f"not all is counted: {why}")
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def main(paths: Sequence[str]) -> None:
    """The process: writes a line of JSON for each."""
    for each in overviews(paths):
        sys.stdout.buffer.write(msgspec.json.encode(each) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
