"""Captures of all workers: each writes segments of its own into the same folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from klamm.client.types import Capture as CaptureState
from klamm.proxy import config
from klamm.proxy.control.capture_folder import CaptureFolder
from klamm.proxy.control.capturing import ENDING_S, Begin, Capturing
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.workers.messages import Part
from klamm.proxy.workers.processes import Workers

SUMS = ("rows", "segments", "waiting_bytes", "dropped_bytes", "lost_frames", "failures", "written_bytes")


class WorkersCapture:
    """A capture in each worker. `parts`: the states of the workers as they were taken last."""

    def __init__(self, settings: config.Capture, parts: Sequence[Part]) -> None:
        self.settings, self.parts, self.since = settings, parts, time.time()

    def state(self) -> CaptureState:
        states = [part.capture for part in self.parts if part.capture is not None]
        errors = [each.last_error for each in states if each.last_error]
        settings = self.settings
        return CaptureState(
            name=" ".join(each.name for each in states),
            folder=settings.folder,
            records=settings.records,
            filter=settings.filter,
            **{name: sum(getattr(each, name) for each in states) for name in SUMS},
            last_error=errors[-1] if errors else "",
            failing=any(each.failing for each in states),
            since=self.since,
        )


class WorkersCaptures:
    """Begins and ends them; takes the place of control.capturing.Captures."""

    def __init__(self, workers: Workers, log: EventLog, parts: Sequence[Part]) -> None:
        self.workers, self.log, self.parts = workers, log, parts
        self.place = CaptureFolder(log)
        self.running: WorkersCapture | None = None
        self.folder: str | None = None

    def made(self, settings: config.Capture, succeeds: bool = False) -> Begin:
        """A function that begins a capture; none may run then. `succeeds`: see Captures. Raises OSError."""
        Capturing(settings, self.log)  # tries the folder and the key
        return partial(self._begin, WorkersCapture(settings, self.parts), succeeds)

    def _begin(self, capture: WorkersCapture, succeeds: bool) -> None:
        self.running, self.folder = capture, capture.settings.folder
        self.place.lock(self.folder, succeeds)
        self.workers.tell("capture", capture.settings)

    async def end(self) -> None:
        running, self.running = self.running, None
        if running is not None:
            await self.workers.ask("end_capture", within_s=2 * ENDING_S)
            self.place.release()
