"""Between the proxy's loop and a capture: a bounded queue, and the thread that writes what is in it.

The loop never waits, and nothing here raises into it. A chunk that the queue has no room for is dropped, and
the capture says so where it is missing.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from math import inf

from klamm.captures.captured import CapturedConnection
from klamm.captures.storage.scribe import Entry, Scribe
from klamm.decoders.schema import Side
from klamm.rules.expressions import SIDES
from klamm.settings.heap import keep_freed

QUEUE_BYTES = 8 << 20  # beyond it only ends of connections whose beginning is in it
ENTRY_BYTES = 256  # of an entry, beside its data
GATHER_S = 0.02  # after a first chunk, for more of them
SLICE, SLICE_BYTES = 8, 64 << 10  # entries taken at once: their rows take ten times the memory
WORK_S, REST_S = 0.0005, 0.00005  # the thread rests in between: that hands the interpreter to the loop

Stream = tuple[int, Side]


class Keeper:
    """Takes the bytes of connections in one thread, and writes them in another. Times are in ns since 1970;
    numbers are those of connections.
    """

    def __init__(self, scribe: Scribe, queue_bytes: int = QUEUE_BYTES) -> None:
        self.counters = scribe.counters
        self._scribe, self._queue_bytes = scribe, queue_bytes
        self._soon_bytes = queue_bytes // 4  # with more than that in the queue the thread does not rest
        self._queue: deque[Entry] = deque()
        self._put = self._taken = 0  # bytes so far; each is written by one thread
        self._missing: dict[Stream, int | None] = {}  # dropped bytes that are not in the queue as a gap yet
        self._refused: dict[int, CapturedConnection] = {}  # it had no room for their beginning
        self._unseen = 0  # connections that came and went without room for them
        self._wake_at: float = inf  # of bytes put
        self._wake = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._run, name="klamm-capture", daemon=True)

    @property
    def waiting_bytes(self) -> int:
        """The bytes in the queue."""
        return self._put - self._taken

    def start(self) -> None:
        keep_freed(self._queue_bytes)
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Write what waits, and seal. False: the disk was not done by then. Not for the loop: it waits."""
        for stream in list(self._missing):
            self._tell(stream, time.time_ns())
        self._tell_unseen(time.time_ns())
        self._ending = True
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def opened(self, connection: CapturedConnection, time_ns: int, mid_stream: bool = False) -> None:
        """`mid_stream`: it was there before, and its bytes so far were not seen."""
        number = connection.number
        if self._has_room(0):
            self._tell_unseen(time_ns)
            self._add(("found" if mid_stream else "opened", number, "request", time_ns, connection))
        else:
            self._refused[number] = connection
            self._missing[number, "request"] = self._missing[number, "response"] = None

    def chunk(self, number: int, side: Side, data: bytes, time_ns: int, forwarded: bool = True) -> None:
        """Takes bytes of the client ("request") or the broker ("response"). `forwarded`: klamm sent them on
        unchanged; else `sent` gets the bytes that it sent.
        """
        if self._put + len(data) + ENTRY_BYTES - self._taken > self._queue_bytes:
            self._drop((number, side), len(data), len(data))
            return
        if self._missing:
            self._tell((number, side), time_ns)
        self._add(("chunk" if forwarded else "replaced", number, side, time_ns, data), len(data))

    def sent(self, number: int, side: Side, data: bytes, time_ns: int) -> None:
        """Takes the bytes that klamm sent in their place, to the broker ("request") or the client
        ("response").
        """
        if (number, side) in self._missing or not self._has_room(len(data)):
            self._drop((number, side), len(data), None)
        else:
            self._add(("sent", number, side, time_ns, data), len(data))

    def keep(self, number: int, correlation_id: int) -> None:
        """Keeps the exchange, whatever the expression says; call it before the bytes that end its frame."""
        if self._has_room(0):
            self._add(("keep", number, "request", 0, correlation_id))

    def closed(self, number: int, why: str, time_ns: int) -> None:
        if number not in self._refused:
            for side in SIDES:
                self._tell((number, side), time_ns)
            self._add(("closed", number, "request", time_ns, why))
            return
        del self._refused[number]
        for side in SIDES:
            self._missing.pop((number, side), None)
        self._unseen += 1

    def cluster(self, name: str, cluster_id: str) -> None:
        """Kafka's own id of a cluster. Segments that begin or end later name it."""
        self._add(("cluster", -1, "request", 0, (name, cluster_id)))

    def _has_room(self, size: int) -> bool:
        return self._put + size + ENTRY_BYTES - self._taken <= self._queue_bytes

    def _add(self, entry: Entry, size: int = 0) -> None:
        self._queue.append(entry)
        self._put += size + ENTRY_BYTES
        if self._put >= self._wake_at:
            self._wake_at = inf
            self._wake.set()

    def _drop(self, stream: Stream, size: int, missing: int | None) -> None:
        """`missing` None: how the bytes that came go on is not known from here on."""
        self.counters.dropped_bytes += size
        so_far = self._missing.get(stream, 0)
        self._missing[stream] = None if missing is None or so_far is None else so_far + missing

    def _tell(self, stream: Stream, time_ns: int) -> None:
        """Say where bytes are missing, now that there is room."""
        number, side = stream
        refused = self._refused.pop(number, None)
        if refused is not None:
            self._add(("found", number, side, time_ns, refused))
        missing = self._missing.pop(stream, 0)
        if missing != 0:
            self._add(("gap", number, side, time_ns, missing))

    def _tell_unseen(self, time_ns: int) -> None:
        if self._unseen:
            self._add(("unseen", -1, "request", time_ns, self._unseen))
            self._unseen = 0

    def _run(self) -> None:
        rested_s = time.monotonic()
        while self._queue or not self._ending:
            if not self._queue:
                self._idle()
            entries = self._slice()
            try:
                self._scribe.take(entries)
                self._scribe.tick()
            except Exception as wrong:  # the queue would fill for ever
                self.counters.failures += 1
                self.counters.last_error = repr(wrong)
            self._taken += sum(map(_size, entries))
            if time.monotonic() - rested_s > WORK_S and self.waiting_bytes < self._soon_bytes:
                time.sleep(REST_S)
                rested_s = time.monotonic()
        with suppress(Exception):
            self._scribe.end()

    def _slice(self) -> list[Entry]:
        """Remove the oldest entries from the queue."""
        entries, size, queue = list[Entry](), 0, self._queue
        while queue and len(entries) < SLICE and size < SLICE_BYTES:
            entries.append(queue.popleft())
            size += _size(entries[-1])
        return entries

    def _idle(self) -> None:
        """Waits until there is something to do, and a moment longer for entries that come together."""
        self._wake.clear()
        self._wake_at = 0
        if not self._queue and not self._ending:
            due_s = self._scribe.due_s()
            self._wake.wait(None if due_s is None else max(0.0, due_s - time.monotonic()))
        self._wake.clear()
        self._wake_at = self._put + self._soon_bytes
        if not self._ending:
            self._wake.wait(GATHER_S)
        self._wake_at = inf


def _size(entry: Entry) -> int:
    data = entry[4]
    return ENTRY_BYTES + len(data) if type(data) is bytes else ENTRY_BYTES
