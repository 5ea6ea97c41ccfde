"""The traffic of captures: read once for each page and wish, in the background, and told meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from klamm.captures.frames import Framed
from klamm.dashboards.web.traffic.answers import Asked, Traffic
from klamm.dashboards.web.traffic.cells import MOST_CELLS
from klamm.dashboards.web.traffic.chosen import chosen as chosen_node
from klamm.dashboards.web.traffic.rows import Tables
from klamm.dashboards.web.traffic.tally import MOST_OPENED, Tally
from klamm.rules.expressions import Expression

MOST_READINGS = 3  # that are kept: the oldest ends
UNSEEN_S = 30.0  # nobody asked for so long: reading stops
SOON_S = 0.5  # an answer waits so long for the end of the reading
REST = 5  # times as long as summing up took, the sums are shown again

UNKEPT = "{:,} frames were not kept, or cannot be read: their topics, errors and groups are not counted."
WITHOUT_REQUEST = (
    "Answers without their requests, whose clients and APIs nobody knows, are not counted: {:,}."
)
MORE = "The first {:,} connections are counted."
REST_OF = "There are too many clients and topics to count each: those that came last are together in other."
UNJUDGED = "{:,} frames are left out: the filter takes too much work on them."


class Passage(NamedTuple):
    """One way through the captures: the exchanges of a page's wish, in batches, and the period, in seconds
    since 1970. `problems` has what could not be read, once all was.
    """

    found: Iterator[list[Framed]]
    since: float
    until: float
    problems: Sequence[str]
    expression: Expression | None


class CapturedTraffic:
    """Keeps the newest readings, for pages that sort, search and choose. `begin` waits for the disk: it is
    called in a thread.
    """

    def __init__(self, begin: Callable[[Asked], Passage]) -> None:
        self.begin = begin
        self.readings: OrderedDict[tuple[object, ...], Reading] = OrderedDict()

    async def traffic(self, asked: Asked) -> Traffic:
        """As far as the captures are read."""
        key = asked.page, asked.where, asked.since, asked.until
        reading = self.readings.pop(key, None)
        if reading is None or reading.is_given_up:
            reading = Reading(self.begin, asked)
        self.readings[key] = reading
        while len(self.readings) > MOST_READINGS:
            _, oldest = self.readings.popitem(last=False)
            oldest.stop()
        return await reading.answer(asked)


class Reading:
    """One passage, taken to its end. A thread reads a batch or sums up, never both at once."""

    def __init__(self, begin: Callable[[Asked], Passage], asked: Asked) -> None:
        self.begin, self.asked, self.tally = begin, asked, Tally()
        self.passage: Passage | None = None
        self.is_whole = self.is_given_up = False
        self._tables: Tables | None = None
        self._summed, self._due, self._until = -1, 0.0, 0.0  # of the tables
        self._seen = time.monotonic()
        self._one = asyncio.Lock()
        self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        self.is_given_up = True
        self._task.cancel()

    async def answer(self, asked: Asked) -> Traffic:
        """The answer to a question about this passage."""
        self._seen = time.monotonic()
        await asyncio.wait({self._task}, timeout=SOON_S)
        if self._task.done() and not self._task.cancelled():
            self._task.result()
        async with self._one:
            return await asyncio.to_thread(self._answer, asked)

    async def _run(self) -> None:
        while not self.is_whole:
            async with self._one:
                await asyncio.to_thread(self._take)
            if time.monotonic() - self._seen > UNSEEN_S:
                self.is_given_up = True
                return

    def _take(self) -> None:
        if self.passage is None:
            self.passage = self.begin(self.asked)
        batch = next(self.passage.found, None)
        for one in batch or ():
            self.tally.add(one)
        self.is_whole = batch is None

    def _answer(self, asked: Asked) -> Traffic:
        tables = self._sums()
        rows, matching = tables.shown(asked)
        passage = self.passage
        since, until = (0.0, 0.0) if passage is None else (passage.since, passage.until)
        if not self.is_whole:  # rates are of the time that is read
            until = min(until, max(since, self._until))
        return Traffic(
            state="whole" if self.is_whole else "reading",
            since=since,
            until=until,
            seconds=max(until - since, 0.001),
            counts={name: len(nodes) for name, nodes in tables.of.items()},
            matching=matching,
            rows=rows,
            chosen=chosen_node(tables, asked),
            many=tables.many,
            exchanges=self.tally.exchanges,
            notes=list(self._notes()),
            problem="" if passage is None else "; ".join(passage.problems),
        )

    def _sums(self) -> Tables:
        """Of all that is read, or of a little less while there is more to come."""
        tables, began = self._tables, time.monotonic()
        stale = self._summed != self.tally.exchanges and (self.is_whole or began >= self._due)
        if tables is None or stale:
            tables = self._tables = Tables(self.tally.cells)
            self._summed, self._until = self.tally.exchanges, self.tally.last_ns / 1e9
            self._due = began + (REST + 1) * (time.monotonic() - began)
        return tables

    def _notes(self) -> Iterator[str]:
        tally, cells = self.tally, self.tally.cells
        expression = None if self.passage is None else self.passage.expression
        if expression is not None and expression.unjudged:
            yield UNJUDGED.format(expression.unjudged)
        if tally.unkept:
            yield UNKEPT.format(tally.unkept)
        if tally.without_request:
            yield WITHOUT_REQUEST.format(tally.without_request)
        if tally.full:
            yield MORE.format(MOST_OPENED)
        if max(len(cells.calls), len(cells.about)) > MOST_CELLS:
            yield REST_OF
