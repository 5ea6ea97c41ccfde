"""The structured log: a call puts one tuple into a bounded queue, a thread formats and writes.

The loop never waits for a terminal, a pipe or a disk. What the queue has no room for is counted, and said
when there is room again.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from functools import partial
from math import inf
from pathlib import Path as FilePath
from queue import Empty, SimpleQueue
from select import select
from typing import Any, Protocol

from klamm.proxy import config
from klamm.proxy.log.events import Level
from klamm.proxy.log.file import LogFile
from klamm.proxy.log.lines import EXCHANGE, Entry, console_line, json_line

CAPACITY = 4096  # lines waiting
BATCH = 256  # lines in one write
GATHER_S = 0.02  # a short wait lets lines of a busy time share a write
EVERY_S = 60.0  # between two warnings, or errors, of one kind
LINES = 100  # in each second, of events that deserve a line each
KINDS = 1024  # rate limits kept; beyond it, all of a kind share one
CLOSE_S = 2.0  # the longest that close waits for a reader that does not read


class Output(Protocol):
    """Bytes of whole lines go there. Its methods raise OSError, or ValueError where it is closed."""

    def write(self, data: bytes, /) -> object: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class EventLog:
    """Events and exchanges in the order of their calls; safe from any thread.

    Warnings and errors are written once per kind, cluster and minute, events that deserve a line each up to
    100 times a second; the next line of the kind has the number `suppressed` in between. `dropped` counts the
    lines that found the queue full or the output broken. An output that it owns is closed at the end.
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
        self._owns_output = owns_output
        self._output, self._line, self._clock, self._capacity = output, line, clock, capacity
        self._waiting: SimpleQueue[Entry | None] = SimpleQueue()
        self._limits: dict[tuple[str, str, Hashable], _Limit] = {}
        self._closed = threading.Event()
        self._ended = False
        self._writer = threading.Thread(target=self._write_all, name="klamm-log", daemon=True)
        self._writer.start()

    def event(
        self,
        kind: str,
        message: str,
        level: Level = "info",
        *,
        per: Hashable = None,
        each: bool = False,
        **fields: Any,
    ) -> None:
        """Log something that happened: `kind` is a short name for it, such as "bad_size".

        A warning or error of the same kind and cluster within a minute is only counted; `per` (a node id,
        say) keeps things apart that share a kind and deserve a line each. `each`: so does every one of
        these, up to 100 in a second, of whatever cluster.
        """
        now = self._clock()
        if level != "info" or each:
            limit = self._limit(kind, "" if each else fields.get("cluster", ""), per, now)
            if now >= limit.until:
                if limit.suppressed:
                    fields["suppressed"] = limit.suppressed
                limit.until, limit.left = (now + 1, LINES) if each else (now + EVERY_S, 1)
                limit.suppressed = 0
            if not limit.left:
                limit.suppressed += 1
                limit.last = Entry(now, kind, level, message, fields) if each else None
                return
            limit.left, limit.last = limit.left - 1, None
        self._put(Entry(now, kind, level, message, fields))

    def settle(self) -> None:
        """Of events that deserve a line each: the last one of a second that is over, with the number of those
        before it that were suppressed. Without it that number would wait for the next event.
        """
        self._settle(self._clock())

    def _settle(self, now: float) -> None:
        for limit in list(self._limits.values()):
            if limit.last is not None and now >= limit.until:
                left_out = {"suppressed": limit.suppressed - 1} if limit.suppressed > 1 else {}
                self._put(limit.last._replace(fields={**limit.last.fields, **left_out}))
                limit.last, limit.suppressed = None, 0

    def exchange(self, fields: Mapping[str, Any]) -> None:
        """Log one request and its response. The fields are read later, in another thread: do not change them.

        api, version, client_id, connection, broker, topics ({name: [partition, ...]}), group, request_bytes,
        response_bytes (None: no answer was due), latency_ms or latency_ns, errors ({name: count}, or
        [(topic or None, code), ...]); JSON has what else there is, too.
        """
        self._put(Entry(self._clock(), EXCHANGE, "info", "", fields))

    def close(self) -> None:
        """Write what waits, and how many of each kind were suppressed last. Waits 2 s at most."""
        if self._closed.is_set():
            return
        now = self._clock()
        self._settle(inf)
        for (kind, cluster, _), limit in self._limits.items():
            if limit.suppressed:
                fields: dict[str, Any] = {"cluster": cluster} if cluster else {}
                fields["suppressed"] = limit.suppressed
                self._put(Entry(now, kind, "warning", "more of this kind were not logged", fields))
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
                quiet = [
                    old for old, limit in self._limits.items() if now >= limit.until and not limit.suppressed
                ]
                for old in quiet:
                    del self._limits[old]
            if len(self._limits) >= KINDS:
                key = (kind, cluster, None)
            self._limits.setdefault(key, _Limit())
        return self._limits[key]

    def _write_all(self) -> None:
        said, failure = 0, ""
        while not self._ended:
            batch = self._batch()
            lines = [self._format(entry) for entry in batch]
            if self.dropped > said:
                dropped, why = self.dropped, failure or "the output is slower than the traffic"
                message, fields = f"log lines were dropped: {why}", {"dropped": dropped - said}
                lines.append(self._format(Entry(self._clock(), "log_dropped", "warning", message, fields)))
                failure = self._write(lines)
                said = said if failure else dropped
            else:
                failure = self._write(lines)
            if failure:
                self.dropped += len(batch)
            if len(batch) < BATCH:
                self._closed.wait(GATHER_S)
        if self._owns_output:
            with suppress(OSError):
                self._output.close()

    def _batch(self) -> list[Entry]:
        """The lines that wait, one at least, unless this is the end."""
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
        select((), (), (), 0)  # hands the interpreter to the loop before each line, not after 5 ms of lines
        try:
            return self._line(entry)
        except Exception as problem:
            message = f"a line of the kind {entry.kind} could not be written: {problem!r}"
            return self._line(Entry(entry.time, "log_failed", "error", message, {}))

    def _write(self, lines: list[bytes]) -> str:
        """Why it failed: a pipe that nobody reads any more, a full disk, a closed file."""
        try:
            self._output.write(b"".join(lines))
            self._output.flush()
        except (OSError, ValueError) as error:
            return getattr(error, "strerror", None) or str(error)
        return ""


class _Limit:
    """How many lines are left until a time, and how many were suppressed since the last one; `last`: the
    newest of these, where they deserve a line each.
    """

    __slots__ = ("last", "left", "suppressed", "until")

    def __init__(self) -> None:
        self.until, self.left, self.suppressed = 0.0, 0, 0
        self.last: Entry | None = None


def open_log(settings: config.Log) -> EventLog:
    """The log that a configuration asks for. Raises OSError where its file cannot be opened."""
    owns = settings.file is not None
    output = sys.stderr.buffer if settings.file is None else LogFile(FilePath(settings.file))
    terminal = output.isatty()
    if settings.format == "console" or (settings.format == "auto" and terminal):
        colour = terminal and not os.environ.get("NO_COLOR")
        return EventLog(output, partial(console_line, colour=colour), owns_output=owns)
    return EventLog(output, json_line, owns_output=owns)
