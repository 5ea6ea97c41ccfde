"""Captures, which begin and end while klamm runs, of all connections of all clusters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from secrets import token_bytes
from typing import Protocol

from klamm.captures.captured import CapturedConnection
from klamm.captures.storage.keeper import Keeper
from klamm.captures.storage.picking import Picking
from klamm.captures.storage.scribe import Counters, Scribe
from klamm.captures.storage.segments import origin
from klamm.captures.storage.writing import Limits, Writer
from klamm.captures.streams.blanking import Keeping
from klamm.client.types import Capture as CaptureState
from klamm.proxy import config
from klamm.proxy.control.capture_folder import CaptureFolder
from klamm.proxy.edge.tap import Tap
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.log.events import Level
from klamm.rules.expressions import parse

Begin = Callable[[], None]
ENDS = {"capture_recovered": "capture_failed"}  # event -> the problem that is over with it
ENDING_S = 10.0  # at most, to write the rows that wait when klamm stops


class Capturing:
    """One capture of this process. Raises OSError if its folder cannot be made."""

    def __init__(self, settings: config.Capture, log: EventLog) -> None:
        folder = Path(settings.folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.settings, begun = settings, origin(settings.records)
        self.name = begun.capture
        key = token_bytes(32) if settings.key_file is None else Path(settings.key_file).read_bytes()[:64]
        limits = Limits(settings.segment_bytes, settings.segment_s, settings.keep_bytes, settings.keep_s)
        picking = None if settings.filter is None else Picking(parse(settings.filter))
        self.keeper = Keeper(
            Scribe(Writer(folder, begun, limits), Keeping(settings.records, key), _saying(log), picking),
            settings.queue_bytes,
        )
        self.wall_offset_ns = time.time_ns() - time.monotonic_ns()
        self.since = time.time()

    @property
    def counters(self) -> Counters:
        return self.keeper.counters

    def state(self) -> CaptureState:
        settings, counters = self.settings, self.counters
        return CaptureState(
            name=self.name,
            folder=settings.folder,
            records=settings.records,
            filter=settings.filter,
            rows=counters.rows,
            segments=counters.segments,
            waiting_bytes=self.keeper.waiting_bytes,
            dropped_bytes=counters.dropped_bytes,
            lost_frames=counters.lost_frames,
            failures=counters.failures,
            last_error=counters.last_error,
            failing=counters.failing,
            since=self.since,
            written_bytes=counters.written_bytes,
        )

    def start(self) -> None:
        self.keeper.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self.keeper.stop, ENDING_S)

    def tap(
        self,
        number: int,
        cluster: str,
        broker: str,
        client: str,
        mid_stream: bool = False,
        principal: str | None = None,
    ) -> Tap:
        """A tap for this connection, from now on; `mid_stream`: it was open before."""
        connection = CapturedConnection(self.name, number, cluster, broker, client, principal)
        self.keeper.opened(connection, time.monotonic_ns() + self.wall_offset_ns, mid_stream)
        return Tap(self.keeper, number, self.wall_offset_ns)


class Captured(Protocol):
    """A cluster, whose connections a capture can take."""

    def capture(self, capturing: Capturing | None) -> None: ...


class Captures:
    """Begins and ends captures of all connections of `proxied`. `running`: the one that runs, if any;
    `folder`: that of this one, or else of the one that ran last. It is locked meanwhile, for a worker by
    its lead (`locks` False).
    """

    def __init__(self, proxied: Sequence[Captured], log: EventLog, locks: bool = True) -> None:
        self.proxied, self.log = proxied, log
        self.place = CaptureFolder(log) if locks else None
        self.running: Capturing | None = None
        self.folder: str | None = None

    def made(self, settings: config.Capture, succeeds: bool = False) -> Begin:
        """A function that begins a capture; none may run then. `succeeds`: after that of another klamm, which
        goes on for a while. Raises OSError.
        """
        return partial(self._begin, Capturing(settings, self.log), succeeds)

    def _begin(self, capture: Capturing, succeeds: bool) -> None:
        self.running, self.folder = capture, capture.settings.folder
        if self.place is not None:
            self.place.lock(self.folder, succeeds)
        capture.start()
        for proxied in self.proxied:
            proxied.capture(capture)

    async def end(self) -> None:
        running, self.running = self.running, None
        if running is None:
            return
        for proxied in self.proxied:
            proxied.capture(None)
        await running.stop()
        if self.place is not None:
            self.place.release()


class Ending(Protocol):
    """Something that captures."""

    async def end(self) -> None: ...


async def replace(captures: Ending, begin: Begin | None) -> None:
    """End the capture that runs, if there is one, and begin this one, if it is one."""
    await captures.end()
    if begin is not None:
        begin()


def _saying(log: EventLog) -> Callable[[str, str], None]:
    """Logs messages of the writer's thread, on the loop. Errors are limited, recoveries are not."""
    loop = asyncio.get_running_loop()

    def say(kind: str, message: str) -> None:
        ends = ENDS.get(kind, "")
        level: Level = "info" if ends else "error"
        loop.call_soon_threadsafe(lambda: log.event(kind, message, level, ends=ends))

    return say
