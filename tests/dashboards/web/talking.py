"""A klamm that tells its readers what a test says, and pages that read it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from msgspec.structs import replace

from klamm.client.asynchronous import AsyncKlamm
from klamm.client.failures import NoAnswer, stream_ended
from klamm.client.types import Exchange, Line
from klamm.dashboards.web.frames import frames_of
from klamm.dashboards.web.live import Counters, Live, Relayed
from klamm.dashboards.web.source import Found, Part, Wish
from klamm.rules.expressions import parse

PATIENCE_S = 20


class Talking:
    """`away`: it does not answer. `ahead`: seconds of its clock before that of the test."""

    admin = "here"

    def __init__(self, ahead: float = 0.0) -> None:
        self.readers: list[tuple[str | None, asyncio.Queue[Line | None]]] = []
        self.away, self.ahead = False, ahead

    @asynccontextmanager
    async def live(self, where: str | None, bodies: str) -> AsyncIterator[AsyncIterator[Line]]:
        assert bodies == "raw"
        if self.away:
            raise NoAnswer("no klamm answers at here")
        own: asyncio.Queue[Line | None] = asyncio.Queue()

        async def lines() -> AsyncIterator[Line]:
            while (line := await own.get()) is not None:
                yield line
            raise stream_ended(self.admin)

        self.readers.append((where, own))
        try:
            yield lines()
        finally:
            self.readers = [each for each in self.readers if each[1] is not own]

    async def ask(self, call: object) -> Counters:
        if isinstance(call, Relayed):
            raise NoAnswer("nothing is relayed")
        return Counters(1.0, self.now())

    async def openapi(self) -> dict[str, dict[str, str]]:
        return {"info": {"version": "1"}}

    def now(self) -> float:
        return time.time() + self.ahead

    def tell(self, one: Exchange) -> None:
        """To each reader whose filter it passes; each is told a time of its own."""
        for number, (where, own) in enumerate(self.readers):
            if where is None or parse(where).holds(*frames_of(one)):
                own.put_nowait(Line(replace(one, time=one.time + number * 1e-5)))

    def drop(self, count: int, since: float, until: float) -> None:
        for _, own in self.readers:
            own.put_nowait(Line(dropped=count, since=since, until=until))

    def go(self) -> None:
        """It ends."""
        self.away = True
        for _, own in self.readers:
            own.put_nowait(None)


class Page:
    """What a page has got until now."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.some = asyncio.Event()

    @property
    def exchanges(self) -> list[tuple[str, Exchange]]:
        return [each for found in self.found for each in found.exchanges]

    @property
    def missing(self) -> list[Part]:
        return next((found.missing for found in reversed(self.found) if found.missing), [])

    async def until(self, there: Callable[[Page], Any]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not there(self):
                self.some.clear()
                await self.some.wait()

    async def has(self, *names: str) -> None:
        """The members of heartbeats whose exchanges it has got, in this order."""
        await self.until(lambda page: len(page.exchanges) >= len(names))
        assert [member(one) for _, one in self.exchanges] == list(names)


def member(one: Exchange) -> Any:
    request, _ = frames_of(one)
    assert request is not None
    return request.values["member_id"]


def source(klamm: Talking) -> Live:
    return Live(cast(AsyncKlamm, klamm))


@asynccontextmanager
async def reading(live: Live, wish: Wish) -> AsyncIterator[Page]:
    """A page that is open."""
    page, found = Page(), live.found(wish)

    async def read() -> None:
        async for each in found:
            page.found.append(each)
            page.some.set()

    task = asyncio.create_task(read())
    try:
        yield page
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await found.aclose()
