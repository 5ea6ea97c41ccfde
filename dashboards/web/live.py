"""A running klamm as the source of a page."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from klamm.client.asynchronous import AsyncKlamm
from klamm.client.calls import Call
from klamm.client.failures import ApiError, NoAnswer
from klamm.client.types import Exchange, Line
from klamm.dashboards.web.frames import frames_of
from klamm.dashboards.web.kept import Kept
from klamm.dashboards.web.lists import Lists
from klamm.dashboards.web.noise import Hidden
from klamm.dashboards.web.past import AT_ONCE, Keyed, Past
from klamm.dashboards.web.source import About, Found, Hole, Part, Wish
from klamm.dashboards.web.spans import LATE_S, Spans, Wanted
from klamm.dashboards.web.traffic.answers import Asked, Traffic
from klamm.dashboards.web.traffic.running import RunningTraffic
from klamm.rules.expressions import parse
from klamm.rules.expressions.work import OFFLINE

AGAIN_S = 1.0  # between two attempts to reach klamm
GATHER_S = 0.05  # lines that come within it share a batch


class Relayed(Call[tuple[int, bytes]]):
    """A call whose answer goes to the page as it is."""

    def answer(self, status: int, body: bytes) -> tuple[int, bytes]:
        return status, body


class Counters(Struct):
    """The part of /v1/counters that is used here: the start of klamm, and its clock."""

    started_at: float
    now: float


class Run(NamedTuple):
    """A klamm that began then: its exchanges have keys from `first` on."""

    first: int
    began: float


class Live:
    """The exchanges of a running klamm, as they happen. While it does not answer it is asked again; a list
    begins with what it has got before, in any case.
    """

    def __init__(self, klamm: AsyncKlamm) -> None:
        self.klamm, self.lists = klamm, Lists()
        self.kept = Kept(first=time.time_ns())  # pages may know keys of a server that was here before
        self.runs: list[Run] = []
        self.ahead = 0.0  # seconds of klamm's clock before that of this machine
        self.spans = Spans(self._now)
        self.counted = RunningTraffic(klamm)

    async def about(self) -> About:
        version = ""
        with suppress(NoAnswer):  # the stream tells it
            version = (await self.klamm.openapi())["info"]["version"]
        return About("live", self.klamm.admin, version)

    async def found(self, wish: Wish) -> AsyncGenerator[Found, None]:
        hidden = Hidden(wish.hide)
        if wish.past:
            yield await asyncio.to_thread(_chosen, self.kept.some(self.kept.kept), wish.where, hidden)
            return
        found = self._with_past(wish, hidden) if wish.kept else self._as_they_happen(wish, hidden)
        async with aclosing(found):
            async for each in found:
                yield each

    async def _as_they_happen(self, wish: Wish, hidden: Hidden) -> AsyncGenerator[Found, None]:
        """Begins with what the wished list has got."""
        keys, holes, reading = deque[str](), list[Hole](), None
        if wish.of_list:
            keys, history = self.lists.open(wish.of_list), self.lists.history(wish.of_list)
            reading = history.begin(wish.where, wish.hide, self.kept.next, time.time())
            forgotten = int(keys[0]) if len(keys) == keys.maxlen else 0
            holes = history.holes(wish.where, wish.hide, max(wish.after, forgotten))
        before = self._before([key for key in keys if int(key) > wish.after], holes, wish.where, hidden)
        try:
            while True:
                try:  # with bodies in any case: an exchange that is chosen later is shown with them
                    async with self.klamm.live(wish.where, "raw") as lines:
                        began = await self._began() if wish.of_list else 0.0
                        with self.spans.reading(Wanted(wish.where, wish.hide)) as span:
                            yield Found(state="reading")
                            async for again in before:
                                yield again
                            yield Found(state="live")
                            async for gathered in _gathered(lines):
                                found = self._found(gathered, hidden, self.kept.add)
                                self.spans.told(span, found)
                                keys.extend(key for key, _ in found.exchanges)
                                yield replace(found, began=began)
                except NoAnswer as problem:
                    yield Found(problem=str(problem))
                async for again in before:  # where klamm was away from the beginning
                    yield again
                await asyncio.sleep(AGAIN_S)
        finally:
            if reading is not None:
                reading.end(self.kept.next, time.time())

    async def _with_past(self, wish: Wish, hidden: Hidden) -> AsyncGenerator[Found, None]:
        """Begins with all that is kept (past.py)."""
        wanted = Wanted(wish.where, wish.hide)
        past = Past(self.kept, self.spans, wanted, partial(_matching, wish.where, hidden))
        while True:
            try:
                async with self.klamm.live(wish.where, "raw") as lines:
                    await self._began()
                    others = len(self.spans.open)
                    with past.reading() as span:
                        yield Found(state="live", now=self._now())
                        if others:  # they have not got yet all that ended before
                            await asyncio.sleep(LATE_S)
                        for more in await past.more():
                            yield more
                        async for gathered in _gathered(lines):
                            found = past.live(span, self._found(gathered, hidden, self.kept.once))
                            yield found
                            for more in await past.more() if found.dropped else ():
                                yield more
            except NoAnswer as problem:
                yield Found(problem=str(problem))
            for more in await past.more():
                yield more
            await asyncio.sleep(AGAIN_S)

    async def exchange(self, key: str) -> Exchange:
        return self.kept.of(key)

    async def relay(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        return await self.klamm.ask(Relayed(method, path, None, body))

    async def traffic(self, asked: Asked) -> Traffic:
        return await self.counted.traffic(asked)

    def _now(self) -> float:
        return time.time() + self.ahead

    async def _began(self) -> float:
        """The start of the klamm that answers now, which numbers connections anew; 0 if it does not tell."""
        call: Call[Counters] = Call("GET", "/v1/counters", Counters)
        try:
            counters = await self.klamm.ask(call)
        except ApiError:  # where it went away the exchanges end, too
            return 0.0
        began, self.ahead = counters.started_at, counters.now - time.time()
        if not self.runs or self.runs[-1].began != began:
            self.runs.append(Run(self.kept.next, began))
        return began

    async def _before(
        self, keys: list[str], holes: list[Hole], where: str | None, hidden: Hidden
    ) -> AsyncIterator[Found]:
        """The exchanges of a list, each part from one klamm, and its holes, each at its place."""
        at, waiting = 0, deque(holes)
        while at < len(keys) or waiting:
            if waiting and (at == len(keys) or waiting[0].at <= int(keys[at])):
                yield Found(hole=waiting.popleft(), again=True)
                continue
            first, began = int(keys[at]), 0.0
            cuts = [waiting[0].at] if waiting else []
            for run in self.runs:
                if run.first <= first:
                    began = run.began
                else:
                    cuts.append(run.first)
            end = min([at + AT_ONCE, *(bisect_left(keys, cut, at, key=int) for cut in cuts)])
            found = await asyncio.to_thread(_chosen, self.kept.some(keys[at:end]), where, hidden)
            yield replace(found, again=True, began=began)
            at = end

    def _found(self, lines: list[Line], hidden: Hidden, add: Callable[[Exchange], str]) -> Found:
        told = (line.exchange for line in lines if line.exchange is not None)
        shown = [one for one in told if not (hidden.expressions and hidden.hides(*frames_of(one)))]
        exchanges = [(add(one), one) for one in shown]
        dropped, unjudged = (sum(getattr(line, name) for line in lines) for name in ("dropped", "unjudged"))
        lost = Part(lines[-1].since, lines[-1].until) if lines[-1].dropped else None
        return Found(exchanges, dropped=dropped, unjudged=unjudged, hidden=hidden.taken(), lost=lost)


def _chosen(kept: list[tuple[str, Exchange]], where: str | None, hidden: Hidden) -> Found:
    """The exchanges for which the expression holds, as klamm judged them."""
    expression = None if where is None else parse(where, OFFLINE)
    if expression is None and not hidden.expressions:
        return Found(kept)
    found = []
    for key, one in kept:
        frames = frames_of(one)
        if (expression is None or expression.holds(*frames)) and not hidden.hides(*frames):
            found.append((key, one))
    return Found(found, hidden=hidden.taken())


def _matching(where: str | None, hidden: Hidden, kept: Keyed) -> Keyed:
    return _chosen(kept, where, hidden).exchanges


async def _gathered(lines: AsyncIterator[Line]) -> AsyncIterator[list[Line]]:
    """Lines that come shortly after each other, together; one about lost exchanges is the last of its list.
    Raises NoAnswer where klamm ends.
    """
    waiting: list[Line] = []
    some = asyncio.Event()

    async def read() -> None:
        async for line in lines:
            waiting.append(line)
            some.set()

    reading = asyncio.create_task(read())
    reading.add_done_callback(lambda _: some.set())
    try:
        while True:
            await some.wait()
            some.clear()
            await asyncio.sleep(GATHER_S)
            found = waiting.copy()
            waiting.clear()
            first = 0
            for end in [number for number, line in enumerate(found, 1) if line.dropped]:
                yield found[first:end]
                first = end
            if found[first:]:
                yield found[first:]
            if reading.done():
                reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
