"""The writer's thread: makes rows from bytes, writes them, and goes on when the disk fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from klamm.captures.captured import Captured
from klamm.captures.storage.picking import Picking
from klamm.captures.storage.writing import Writer, frames_in, lost_in
from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.decoders.schema import Side

RETRY_S = 1.0  # after a failure
STEADY_S = 5.0  # a disk that has taken rows for so long works again: one that is nearly full takes a few

What = Literal["chunk", "replaced", "sent", "gap", "opened", "found", "closed", "keep", "cluster", "unseen"]
# (kind of event, number of the connection, side, ns since 1970, bytes or other details)
Entry = tuple[What, int, Side, int, Any]
Say = Callable[[str, str], None]  # kind, message; called in the writer's thread


@dataclass(slots=True)
class Counters:
    """Since the start; for reading at any time, in any thread."""

    dropped_bytes: int = 0
    rows: int = 0  # given to be written
    lost_frames: int = 0  # known ones: in gaps, and rows that could not be written
    segments: int = 0  # sealed
    written_bytes: int = 0  # to the disk
    failures: int = 0  # of the disk
    last_error: str = ""
    failing: bool = False  # the disk has failed, and not yet taken rows for STEADY_S


class Scribe:
    """Errors of the disk are counted and never raised; a second later it tries again."""

    def __init__(
        self,
        writer: Writer,
        keeping: Keeping,
        say: Say,
        picking: Picking | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counters = Counters()
        self._writer, self._keeping, self._picking, self._clock = writer, keeping, picking, clock
        self._say = say
        self._readers: dict[int, ConnectionReader] = {}
        self._retry_s = 0.0
        self._unwritten = 0  # frames, since the last that was written
        self._failed = False
        self._failing_since_s = 0.0
        self._steady_at_s = 0.0  # while `failing`, and the last try succeeded
        self._lost_before = 0  # frames, until `failing`

    def take(self, entries: Iterable[Entry]) -> None:
        """Takes entries, in the order in which they happened."""
        rows: list[Captured] = []
        for what, number, side, time_ns, more in entries:
            reader = self._readers.get(number)
            try:
                if reader is None:
                    rows += self._begin(what, number, time_ns, more)
                elif what == "chunk":
                    rows += reader.feed(side, more, time_ns)
                elif what == "replaced":
                    rows += reader.feed(side, more, time_ns, False)
                elif what == "sent":
                    rows += reader.sent(side, more, time_ns)
                elif what == "gap":
                    rows += reader.gap(side, more, time_ns)
                elif what == "keep" and self._picking is not None:
                    self._picking.keep(number, more)
                elif what == "closed":
                    rows += reader.end(time_ns, more)
                    del self._readers[number]
            except Exception as wrong:  # in one connection, which is no reason to end the capture
                rows.append(self._given_up(number, time_ns, wrong))
        self._write(rows if self._picking is None else self._picking.picked(rows))

    def due_s(self) -> float | None:
        """The time at which `tick` is wanted; None: not before there are new entries."""
        if self._failed:
            return self._retry_s
        due_s = self._writer.due_s()
        if not self.counters.failing:
            return due_s
        return self._steady_at_s if due_s is None else min(due_s, self._steady_at_s)

    def tick(self) -> None:
        """Do what is due by now."""
        if not self._failed:
            self._guarded(self._writer.tick)
        elif self._clock() >= self._retry_s:
            self._write([])
        if self.counters.failing and not self._failed and self._clock() >= self._steady_at_s:
            self._recovered()

    def end(self) -> None:
        """Write all, and seal; where the disk has failed, try once more."""
        self._retry_s = self._clock()
        self._write([] if self._picking is None else self._picking.rest())
        if not self._failed:
            self._guarded(self._writer.seal)

    def _begin(self, what: What, number: int, time_ns: int, more: Any) -> list[Captured]:
        if what == "cluster":
            name, cluster_id = more
            self._writer.origin.clusters[name] = cluster_id
        if what == "unseen":
            text = f"{more} connections began and ended while there was no room for their frames"
            return [Captured(time_ns, "lost", text=text)]
        if what not in ("opened", "found"):
            return []
        self._readers[number] = ConnectionReader(more, self._keeping, mid_stream=what == "found")
        text = "" if what == "opened" else "it was there when the capture began"
        return [Captured(time_ns, "opened", more, text=text)]

    def _given_up(self, number: int, time_ns: int, wrong: Exception) -> Captured:
        text = f"from here on this connection is not captured, for an error in klamm: {wrong!r}"
        self._say("capture_gave_up", text)
        of = None
        reader = self._readers.pop(number, None)
        if reader is not None:
            of = reader.connection
            with suppress(Exception):
                reader.end(time_ns, text)  # it may hold memory that is shared
        return Captured(time_ns, "lost", of, lost=1, text=text)

    def _write(self, rows: list[Captured]) -> None:
        self.counters.lost_frames += lost_in(rows)
        if not self._failed:
            self._guarded(self._writer.write, rows)
        elif self._clock() < self._retry_s:
            self._lose(frames_in(rows), lost_in(rows))
        else:
            text = f"not written: {self.counters.last_error}"
            loss = Captured(time.time_ns(), "lost", lost=self._unwritten, text=text)
            self._failed, self._unwritten = False, 0
            self._guarded(self._writer.write, [loss, *rows])
            if not self._failed:
                self._guarded(self._writer.flush)
            if not self._failed:
                self._steady_at_s = self._clock() + STEADY_S
        if not self._failed:
            self.counters.rows += len(rows)

    def _guarded(self, write: Callable[..., None], *rows: list[Captured]) -> None:
        try:
            write(*rows)
        except Exception as problem:
            self.counters.failures += 1
            self.counters.last_error = _reason(problem)
            now_s = self._clock()
            if not self.counters.failing:
                self._failing_since_s, self._lost_before = now_s, self.counters.lost_frames
            self._lose(*self._writer.abandon())
            self._failed = self.counters.failing = True
            self._retry_s = now_s + RETRY_S
            message = f"{self._writer.folder}: {self.counters.last_error}"
            self._say("capture_failed", f"{message}; frames are lost until it takes them again")
        self.counters.segments, self.counters.written_bytes = self._writer.sealed, self._writer.written_bytes

    def _recovered(self) -> None:
        """The disk takes rows, and goes on to."""
        self.counters.failing = False
        after_s = self._steady_at_s - STEADY_S - self._failing_since_s
        lost = self.counters.lost_frames - self._lost_before
        frames = "1 frame" if lost == 1 else f"{lost:,} frames"
        message = f"{self._writer.folder}: written again after {after_s:.0f} s, {frames} lost meanwhile"
        self._say("capture_recovered", message)

    def _lose(self, frames: int, lost_before: int) -> None:
        """Frames that no segment will have; `lost_before`: more of them, which are counted already."""
        self._unwritten += frames + lost_before
        self.counters.lost_frames += frames


def _reason(problem: Exception) -> str:
    reason = problem.strerror if isinstance(problem, OSError) else repr(problem)
    return reason or str(problem)
