"""A thread that makes spans of exchanges and gives them to an exporter."""

from __future__ import annotations

import logging
import select
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from klamm.proxy.control.exchange import Seen

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

MOST = 2048  # exchanges that wait
MOST_BYTES = 16 << 20  # of their bodies and fields, roughly
BATCH = 128  # exchanges in one export
SHARE = 0.2  # of one core, the most that the thread takes: the loop needs the same lock of Python
GATHER_S = 0.5  # for which exchanges are gathered
END_S, CUT_S = (
    1.0,
    0.5,
)  # for the last exports, and then for one that is cut off: a lead waits 2 s for a worker
LIBRARY = "opentelemetry"

EXPORTED, FAILED, DROPPED = ("exported",), ("failed",), ("dropped",)  # labels


class Sending:
    """A Queue. `spans` makes the spans of an exchange, and takes those that are made. `say` is told, in the
    thread, when exports begin to fail ("why") and when they succeed again (""). `counts` is added to.
    """

    def __init__(
        self,
        spans: Callable[[list[Any]], tuple[list[ReadableSpan], int]],
        exporter: SpanExporter,
        broker: Callable[[Seen], Any],
        counts: Counter[tuple[str]],
        say: Callable[[str, int], None],
    ) -> None:
        self.spans, self.exporter, self.broker, self.counts, self.say = spans, exporter, broker, counts, say
        self.waiting: deque[Any] = deque()
        self.came = self.gone = 0  # bytes; the first is the loop's, the other the thread's
        self.some, self.ending = threading.Event(), threading.Event()
        self.reasons = Reasons()
        counts.update(dict.fromkeys((EXPORTED, FAILED, DROPPED), 0))
        self.thread = threading.Thread(target=self._run, name="klamm-traces", daemon=True)

    def start(self) -> None:
        self.reasons.hear(LIBRARY)
        self.thread.start()

    @property
    def room(self) -> bool:
        return len(self.waiting) < MOST and self.came - self.gone < MOST_BYTES

    def put(self, one: Seen) -> None:
        if not self.room:
            self.drop(1)
            return
        self.came += _size(one)
        self.waiting.append((one, self.broker(one)))
        if len(self.waiting) == BATCH:
            self.some.set()

    def drop(self, count: int) -> None:
        self.counts[DROPPED] += count

    def end(self) -> None:
        """Export what waits, as far as that takes no longer than END_S. Takes some CUT_S more at most."""
        self.ending.set()
        self.some.set()
        self.thread.join(END_S)
        self.exporter.shutdown()
        self.thread.join(CUT_S)
        self.reasons.cease(LIBRARY)

    def _run(self) -> None:
        while not (self.ending.is_set() and not self.waiting):
            self.some.wait(GATHER_S)
            self.some.clear()
            while self.waiting:
                began = time.thread_time()
                batch = [self.waiting.popleft() for _ in range(min(BATCH, len(self.waiting)))]
                self._export(batch)
                self.gone += sum(_size(seen) for seen, _ in batch)
                self.ending.wait((time.thread_time() - began) * (1 / SHARE - 1))
            if self.ending.is_set():
                self.some.set()

    def _export(self, batch: list[Any]) -> None:
        from opentelemetry.sdk.trace.export import SpanExportResult

        spans, failed = self.spans(batch)
        self.reasons.first = ""
        try:
            done = not spans or self.exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception as problem:  # of a library in a thread: klamm goes on without it
            done = False
            self.reasons.first = repr(problem)
        self.counts[EXPORTED if done else FAILED] += len(batch) - failed
        self.counts[FAILED] += failed
        self.say("" if done else self.reasons.first or "the collector took them not", len(batch))


def yielding() -> None:
    """Let the loop's thread run, not only after 5 ms."""
    select.select((), (), (), 0)


def _size(one: Seen) -> int:
    return one.size + one.told


class Reasons(logging.Handler):
    """Keeps the first line that the library logs in an export, and has none of them go to standard error."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()

    def hear(self, name: str) -> None:
        logger = logging.getLogger(name)
        logger.addHandler(self)
        logger.propagate = False

    def cease(self, name: str) -> None:
        logger = logging.getLogger(name)
        logger.removeHandler(self)
        logger.propagate = True
