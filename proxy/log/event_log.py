"""The structured log: a call puts one tuple into a bounded queue, a thread formats and writes.

The loop never waits for a terminal, a pipe or a disk. Lines for which the queue has no room are counted; a
line with their number follows when there is room again.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path as FilePath
from queue import Empty, SimpleQueue
from select import select
from typing import Any, NamedTuple, Protocol

from klamm.proxy import config
from klamm.proxy.log.events import Level
from klamm.proxy.log.file import LogFile
from klamm.proxy.log.lines import EXCHANGE, Entry, console_line, json_line

CAPACITY = 4096  # lines waiting
BATCH = 256  # lines in one write
GATHER_S = 0.02  # a short wait lets lines of a busy time share a write
EVERY_S = 60.0  # between two warnings, or errors, of one kind
LINES = 100  # in each second, of events with `each`
KINDS = 1024  # limits kept; beyond that, events of one kind share one
CLOSE_S = 2.0  # the longest that close waits for a reader that does not read


Heard = Callable[[str, Level, object, Mapping[str, Any]], None]  # gets each event, before limits


Lock = Callable[[], AbstractContextManager[object]]


class Output(Protocol):
    """Takes bytes of whole lines. Its methods raise OSError, or ValueError if it is closed."""

    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class EventLog:
    """Events and exchanges in the order of their calls; safe from any thread.

    Warnings and errors are written once per kind, cluster and minute, events with `each` up to 100 times a
    second, those with `most` up to so many times a minute; the next line of the kind, or a line when that
    time is over, has the number `suppressed` in between. `dropped` counts the lines that found the queue full
    or the output broken. An output that it owns is closed at the end.
    """

    def __init__(
        self,
        output: Output,
        line: Callable[[Entry], bytes] = json_line,
        clock: Callable[[], float] = time.time,
        capacity: int = CAPACITY,
        owns_output: bool = False,
    ) -> None:
        self.dropped = 0
        self.heard: Heard | None = None
        self.lock: Lock = nullcontext  # held around a write, where other processes write to the same output
        self._owns_output = owns_output
        self._output, self._line, self._clock, self._capacity = output, line, clock, capacity
        self._waiting: SimpleQueue[Entry | None] = SimpleQueue()
        self._limits: dict[tuple[str, str, Hashable], _Limit] = {}
        self._next: Turned | None = None
        self._closed = threading.Event()
        self._ended = False
        self._writer = threading.Thread(target=self._write_all, name="klamm-log", daemon=True)
        self._writer.start()

    def event(
        self,
        kind: str,
        message: object,
        level: Level = "info",
        *,
        per: Hashable = None,
        each: bool = False,
        most: int = 0,
        ends: str = "",
        **fields: Any,
    ) -> None:
        """Log something that happened: `kind` is a short name for it, such as "bad_size".

        A warning or error of the same kind and cluster within a minute is only counted; `per` (a node id,
        say) separates events of one kind, so that each of them is written. `each`: write every event, up to
        100 in a second over all clusters; `most`: up to so many in a minute, of any level. `message`: text,
        or an object whose str() is asked for when the line is written, in another thread. `ends`: the kind of
        a problem that is over; what was suppressed of it (of this `per`, or of each) is told before.
        """
        if self.heard is not None:
            self.heard(kind, level, message, fields)
        now = self._clock()
        if ends:
            self._end(ends, fields.get("cluster", ""), per, now)
        if level != "info" or each or most:
            limit = self._limit(kind, "" if each else fields.get("cluster", ""), per, now)
            if now >= limit.until:
                if limit.suppressed:
                    fields["suppressed"] = limit.suppressed
                limit.until, limit.left = (now + 1, LINES) if each else (now + EVERY_S, most or 1)
                limit.suppressed = 0
            if not limit.left:
                limit.suppressed += 1
                limit.last, limit.each = Entry(now, kind, level, message, fields), each
                return
            limit.left, limit.last = limit.left - 1, None
        self._put(Entry(now, kind, level, message, fields))

    def turn(self, to: Turned) -> None:
        """Write to this output from now on, the lines that wait included; the one before is closed."""
        self._next = to

    def settle(self) -> None:
        """Tell of what was suppressed by limits whose time is over. Without this call that would wait for the
        next event.
        """
        now = self._clock()
        for limit in list(self._limits.values()):
            if now >= limit.until:
                self._tell(limit, now)

    def _end(self, kind: str, cluster: str, per: Hashable, now: float) -> None:
        for key in [key for key in self._limits if key[:2] == (kind, cluster) and per in (None, key[2])]:
            self._tell(self._limits.pop(key), now)

    def _tell(self, limit: _Limit, now: float) -> None:
        """The newest suppressed event, with the number of those before it, or of all."""
        last, count = limit.last, limit.suppressed
        if last is None:
            return
        limit.last, limit.suppressed = None, 0
        if limit.each:
            left_out = {"suppressed": count - 1} if count > 1 else {}
            self._put(last._replace(fields={**last.fields, **left_out}))
        else:
            ago = f"{now - last.time:.0f} s ago"  # the time of the line is that of its writing
            message = f"{count} more of this kind, the last {ago}: {last.message}"
            self._put(Entry(now, last.kind, last.level, message, {**last.fields, "suppressed": count}))

    def exchange(self, fields: Mapping[str, Any]) -> None:
        """Log one request and its response. The fields are read later, in another thread: do not change them.

        api, version, client_id, connection, broker, topics ({name: [partition, ...]}), group,
        transactional_id, request_bytes, response_bytes (None: the request expects none), latency_ms or
        latency_ns, errors ({name: count}, or [(topic or None, code), ...]); JSON lines have all other fields
        too.
        """
        self._put(Entry(self._clock(), EXCHANGE, "info", "", fields))

    def close(self) -> None:
        """Write the waiting lines, and for each kind the number of suppressed ones. Waits 2 s at most."""
        if self._closed.is_set():
            return
        now = self._clock()
        for limit in self._limits.values():
            self._tell(limit, now)
        self._closed.set()
        self._waiting.put(None)
        self._writer.join(CLOSE_S)

    def _put(self, entry: Entry) -> None:
        if self._waiting.qsize() >= self._capacity or self._closed.is_set():
            self.dropped += 1
        else:
            self._waiting.put(entry)

    def _limit(self, kind: str, cluster: str, per: Hashable, now: float) -> _Limit:
        key: tuple[str, str, Hashable] = (kind, cluster, per)
        if key not in self._limits:
            if len(self._limits) >= KINDS:
                for old in [old for old, limit in self._limits.items() if now >= limit.until]:
                    self._tell(self._limits.pop(old), now)
            if len(self._limits) >= KINDS:
                key = (kind, cluster, None)
            self._limits.setdefault(key, _Limit())
        return self._limits[key]

    def _write_all(self) -> None:
        logged, failure = 0, ""
        while not self._ended:
            batch = self._batch()
            self._take_next()
            lines = [self._format(entry) for entry in batch]
            if self.dropped > logged:
                dropped, why = self.dropped, failure or "the output is slower than the traffic"
                message, fields = f"log lines were dropped: {why}", {"dropped": dropped - logged}
                lines.append(self._format(Entry(self._clock(), "log_dropped", "warning", message, fields)))
                failure = self._write(lines)
                logged = logged if failure else dropped
            else:
                failure = self._write(lines)
            if failure:
                self.dropped += len(batch)
            if len(batch) < BATCH:
                self._closed.wait(GATHER_S)
        self._take_next()
        self._close_output()

    def _take_next(self) -> None:
        found, self._next = self._next, None
        if found is not None:
            self._close_output()
            self._output, self._line, self._owns_output = found

    def _close_output(self) -> None:
        if self._owns_output:
            with suppress(OSError):
                self._output.close()

    def _batch(self) -> list[Entry]:
        """The lines that wait; waits for at least one, unless the log is closed."""
        batch: list[Entry] = []
        entry = self._waiting.get()
        while entry is not None:
            batch.append(entry)
            if len(batch) == BATCH:
                return batch
            try:
                entry = self._waiting.get_nowait()
            except Empty:
                return batch
        self._ended = True
        return batch

    def _format(self, entry: Entry) -> bytes:
        select((), (), (), 0)  # lets the loop's thread run before each line, not only after 5 ms
        try:
            return self._line(entry)
        except Exception as problem:
            message = f"a line of the kind {entry.kind} could not be written: {problem!r}"
            return self._line(Entry(entry.time, "log_failed", "error", message, {}))

    def _write(self, lines: list[bytes]) -> str:
        """Write lines. Gives the reason of a failure: a full disk, a pipe without a reader, a closed file."""
        try:
            with self.lock():
                self._output.write(b"".join(lines))
                self._output.flush()
        except (OSError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)
        return ""


class _Limit:
    """`left`: lines that may still be written before `until`. `suppressed`: since the last written line.
    `last`: the newest suppressed event. `each`: is it one that is written each time?
    """

    __slots__ = ("each", "last", "left", "suppressed", "until")

    def __init__(self) -> None:
        self.until, self.left, self.suppressed, self.each = 0.0, 0, 0, False
        self.last: Entry | None = None


class Turned(NamedTuple):
    """An output, and how lines are written to it."""

    output: Output
    line: Callable[[Entry], bytes]
    owned: bool


def turned(settings: config.Log) -> Turned:
    """The output of these settings. Raises OSError whose text names a file that cannot be opened."""
    try:
        output = sys.stderr.buffer if settings.file is None else LogFile(FilePath(settings.file))
    except OSError as error:
        raise OSError(f"the log file {settings.file} cannot be opened: {error.strerror}") from error
    terminal, line = output.isatty(), json_line
    if settings.format == "console" or (settings.format == "auto" and terminal):
        line = partial(console_line, colour=terminal and not os.environ.get("NO_COLOR"))
    return Turned(output, line, settings.file is not None)


def open_log(settings: config.Log) -> EventLog:
    """The log of these settings. Raises OSError if its file cannot be opened."""
    output, line, owned = turned(settings)
    return EventLog(output, line, owns_output=owned)
