"""The traffic of a running klamm: its counters, looked at when a page asks."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from klamm.client.asynchronous import AsyncKlamm
from klamm.client.calls import Call
from klamm.client.types import Connection
from klamm.dashboards.terminal.window import changes
from klamm.dashboards.web.traffic.answers import Asked, Traffic
from klamm.dashboards.web.traffic.chosen import chosen
from klamm.dashboards.web.traffic.counters import of_changes
from klamm.dashboards.web.traffic.looks import Look, Looks, look
from klamm.dashboards.web.traffic.rows import Tables

FRESH_S = 0.8  # a look is so long of use to all pages
FIRST_S = 1.0  # from the first look to the next: before it there is no period
CONNECTIONS_S = 2.0  # between two questions for connections
REST = 20  # times as long as klamm took to list them, it is left alone


class RunningTraffic:
    """Pages share what is asked of klamm."""

    def __init__(self, klamm: AsyncKlamm) -> None:
        self.klamm, self.looks = klamm, Looks()
        self.connections: list[Connection] = []
        self._looked = self._due = float("-inf")
        self._asking = asyncio.Lock()

    async def traffic(self, asked: Asked) -> Traffic:
        """Raises ApiError."""
        async with self._asking:
            current = await self._newest()
            before = self.looks.before(asked)
            if before is current:
                await asyncio.sleep(FIRST_S)
                current, before = await self._look(), self.looks.before(asked)
            connections = self.connections
        return await asyncio.to_thread(_made, asked, before, current, connections)

    async def _newest(self) -> Look:
        newest = self.looks.newest
        if newest is None or time.monotonic() - self._looked > FRESH_S:
            newest = await self._look()
        return newest

    async def _look(self) -> Look:
        call: Call[Any] = Call("GET", "/v1/counters", msgspec.Raw)
        body = bytes(await self.klamm.ask(call))
        began = time.monotonic()
        if began >= self._due:
            self.connections = await self.klamm.connections()
            took = time.monotonic() - began
            self._due = began + max(CONNECTIONS_S, REST * took)
        found = await asyncio.to_thread(look, body)
        self.looks.add(found)
        self._looked = time.monotonic()
        return found


def _made(asked: Asked, before: Look | None, current: Look, connections: list[Connection]) -> Traffic:
    counters = current.counters
    found = changes(None if before is None else before.counters, counters)
    tables = Tables(of_changes(found, counters, connections))
    rows, matching = tables.shown(asked)
    return Traffic(
        state="live",
        since=counters["now"] - found.seconds,
        until=counters["now"],
        seconds=found.seconds,
        counts={name: len(nodes) for name, nodes in tables.of.items()},
        matching=matching,
        rows=rows,
        chosen=chosen(tables, asked),
        many=tables.many,
        notes=[text for about, text in tables.cells.notes.items() if about == asked.table],
    )
