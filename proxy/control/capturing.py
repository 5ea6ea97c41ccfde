"""Captures: begun and ended while klamm runs, on all connections of all clusters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from secrets import token_bytes
from typing import Protocol

from klamm.captures.captured import Connection
from klamm.captures.storage.keeper import Keeper
from klamm.captures.storage.picking import Picking
from klamm.captures.storage.scribe import Counters, Scribe
from klamm.captures.storage.segments import origin
from klamm.captures.storage.writing import Limits, Writer
from klamm.captures.streams.blanking import Keeping
from klamm.client.types import Capture as Told
from klamm.proxy import config
from klamm.proxy.edge.tap import Tap
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.log.events import Level
from klamm.rules.expressions import parse

ENDING_S = 10.0  # for what waits to be written when klamm stops


class Capturing:
    """One capture of this process. Raises OSError where its folder cannot be made."""

    def __init__(self, settings: config.Capture, log: EventLog) -> None:
        folder = Path(settings.folder)
        folder.mkdir(parents=True, exist_ok=True)
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

    @property
    def counters(self) -> Counters:
        return self.keeper.counters

    def state(self) -> Told:
        settings, counters = self.settings, self.counters
        return Told(
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
        )

    def start(self) -> None:
        self.keeper.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self.keeper.stop, ENDING_S)

    def tap(self, number: int, cluster: str, broker: str, client: str, mid_stream: bool = False) -> Tap:
        """For this connection, from now on; `mid_stream`: it was open before."""
        connection = Connection(self.name, number, cluster, broker, client)
        self.keeper.opened(connection, time.time_ns(), mid_stream)
        return Tap(self.keeper, number, self.wall_offset_ns)


class Captured(Protocol):
    """Connections that a capture can be taken of: a cluster's."""

    def capture(self, capturing: Capturing | None) -> None: ...


class Captures:
    """The one that runs, if any, on all connections of `proxied`."""

    def __init__(self, proxied: Sequence[Captured], log: EventLog) -> None:
        self.proxied, self.log = proxied, log
        self.running: Capturing | None = None

    def begin(self, settings: config.Capture) -> Capturing:
        """Raises OSError; there must be none yet."""
        self.running = Capturing(settings, self.log)
        self.running.start()
        for proxied in self.proxied:
            proxied.capture(self.running)
        return self.running

    async def end(self) -> None:
        running, self.running = self.running, None
        if running is None:
            return
        for proxied in self.proxied:
            proxied.capture(None)
        await running.stop()


def _saying(log: EventLog) -> Callable[[str, str], None]:
    """What the writer's thread has to say, said on the loop. Errors are limited, recoveries are not."""
    loop = asyncio.get_running_loop()

    def say(kind: str, message: str) -> None:
        level: Level = "info" if kind == "capture_recovered" else "error"
        loop.call_soon_threadsafe(lambda: log.event(kind, message, level, per=kind))

    return say
