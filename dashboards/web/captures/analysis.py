"""Runs `klamm analyze` over captures in a process of its own, one at a time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from klamm.dashboards.web.captures.findings import Finding, findings

COMMAND = (sys.executable, "-m", "klamm.cli", "analyze")
OF_THE_PAGE = ("jinja2", "vl_convert")  # modules that the report as a page needs
ENDING_S = 10.0  # for Java to remove its files
LINES = 20  # of the standard error, the newest
LONGEST = 1 << 20  # bytes of such a line
Phase = Literal["never", "running", "done", "failed", "cancelled"]


class State(Struct, frozen=True):
    """The analysis that runs, or ran last. `step`, how much of it is `done`, `of` how much (0: not known);
    times in seconds since 1970. `problem`: why it failed; `notes`: what could not be read or looked for;
    `more`: findings beyond those that are kept; `report`: there is a page.
    """

    phase: Phase = "never"
    step: str = ""
    done: int = 0
    of: int = 0
    began: float = 0.0
    ended: float = 0.0
    problem: str = ""
    notes: list[str] = []
    findings: int = 0
    more: int = 0
    report: bool = False


class Progress(Struct, frozen=True):
    """A line of `klamm analyze --progress`."""

    step: str
    done: int
    of: int


class Running(Exception):
    """An analysis runs already."""


class Analysis:
    """`found`: the findings of the last run that came to its end."""

    def __init__(self, paths: Sequence[str], command: Sequence[str] | None = None) -> None:
        self.paths, self.command = paths, command or COMMAND
        self.state, self.found = State(), list[Finding]()
        self._folder: TemporaryDirectory[str] | None = None
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._said: deque[str] = deque(maxlen=LINES)

    @property
    def report(self) -> Path:
        """The page; it is there if the state says so."""
        if self._folder is None:
            self._folder = TemporaryDirectory(prefix="klamm-web-", ignore_cleanup_errors=True)
        return Path(self._folder.name) / "report.html"

    def begin(self, inspector: str) -> None:
        """`inspector`: where the links of the page lead. Raises Running."""
        if self.state.phase == "running":
            raise Running
        self.state = State("running", "starting", began=time.time())
        self._task = asyncio.create_task(self._run(inspector))

    async def cancel(self) -> None:
        """Returns when it has ended."""
        if self._task is None or self._task.done():
            return
        self.state = replace(self.state, phase="cancelled")
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self.state = replace(self.state, ended=time.time())

    async def close(self) -> None:
        """The server ends."""
        await self.cancel()
        if self._folder is not None:
            self._folder.cleanup()

    async def _run(self, inspector: str) -> None:
        try:
            state = await self._carried_out(inspector)
        except OSError as problem:
            state = replace(self.state, phase="failed", problem=f"{self.command[0]}: {problem.strerror}")
        except Exception as wrong:
            state = replace(self.state, phase="failed", problem=f"not what klamm analyze prints: {wrong!r}")
        self.state = replace(state, ended=time.time())

    async def _carried_out(self, inspector: str) -> State:
        self._said.clear()
        page = (
            ["--html", str(self.report), "--inspector", inspector] if all(map(find_spec, OF_THE_PAGE)) else []
        )
        words = [*self.command, "--json", "--progress", *page, "--", *self.paths]
        process = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, limit=LONGEST, start_new_session=True
        )
        reading = asyncio.gather(_read(process), self._listen(process))
        try:
            printed, _ = await asyncio.shield(reading)
            await process.wait()
        except BaseException:
            await _ended(process, reading)
            raise
        return self._result(printed)

    async def _listen(self, process: Process) -> None:
        """To the standard error: steps, and what else it says."""
        assert process.stderr is not None
        async for line in process.stderr:
            try:
                step = msgspec.json.decode(line, type=Progress)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                self._said.append(line.decode("utf-8", "replace").strip())
                continue
            if self.state.phase == "running":
                self.state = replace(self.state, step=step.step, done=step.done, of=step.of)

    def _result(self, printed: bytes) -> State:
        if not printed.strip():
            said = [line for line in self._said if line]
            own = [line.removeprefix("klamm: ") for line in said if line.startswith("klamm: ")]
            return replace(
                self.state, phase="failed", problem=(own or said or ["it ended without a word"])[-1]
            )
        told = msgspec.json.decode(printed)
        self.found = findings(told)
        return replace(
            self.state,
            phase="done",
            notes=_notes(told),
            findings=len(self.found),
            more=sum(told["more"].values()),
            report=self.report.exists() and self.report.stat().st_size > 0,
        )


async def _read(process: Process) -> bytes:
    assert process.stdout is not None
    return await process.stdout.read()


async def _ended(process: Process, reading: asyncio.Future[Any]) -> None:
    """Ends it and the Java that it has started, which holds its output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        await asyncio.wait({reading}, timeout=ENDING_S)
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


def _notes(told: Mapping[str, Any]) -> list[str]:
    read = told["read"]
    lost = read["lost_frames"]
    missing = [f"{lost:,} frames are missing in the capture"] if lost else []
    failed = [f"the detector {name} failed: {why}" for name, why in told["failed"].items()]
    return [*read["damaged"], *missing, *failed]
