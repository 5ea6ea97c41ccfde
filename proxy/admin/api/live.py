"""/v1/live: exchanges as they happen, a line of JSON each, for as long as the caller reads."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator
from typing import Protocol

import msgspec
from aiohttp import web
from msgspec import Struct

from klamm.client.types import Line
from klamm.proxy.admin.api.exchanges import condition
from klamm.proxy.admin.listening.json_bodies import encoded
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.control.exchange import Bodies, Seen, shown, treatments_of
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.workers.messages import Lines, Lost
from klamm.rules.expressions import Expression
from klamm.rules.glob import Glob
from klamm.settings.listing import named

LINES = "application/jsonl"
WAITING = 1000  # exchanges that wait for one reader; more are only counted
WAITING_BYTES = 4 << 20
BATCH = 100  # lines in one write
GATHER_S = 0.1  # between two writes, so that exchanges share one
SHARE = 0.05  # the most of the loop's time for all readers
MOST = 16  # readers
UNREAD_S = 30.0  # a reader that takes nothing for so long is given up
LOOK_S = 1.0  # between two checks whether the reader is still connected


class Filter(Struct, frozen=True, forbid_unknown_fields=True):
    """`where` is an expression as in rules; `bodies`: left out, as values, or raw. `rule`: those exchanges on
    which a rule of this name acted, or one that fits this glob; several names or globs have commas between.
    """

    where: str | None = None
    bodies: Bodies = "none"
    rule: str | None = None

    def __post_init__(self) -> None:
        if self.rule is not None and not named(self.rule):
            raise ValueError(
                f"rule: {self.rule!r} names no rule: write rule=NAME, or a glob, or leave it out"
            )


class Reader:
    """A listener: the exchanges that wait for one reader."""

    def __init__(self, bodies: bool = False) -> None:
        self.bodies = bodies
        self.waiting: deque[Seen | Lost] = deque()
        self.bytes = 0
        self.full = False
        self.some = asyncio.Event()

    def take(self, one: Seen) -> None:
        if self.full:
            self._lose(1, one.time)
            return
        self.waiting.append(one)
        self.bytes += one.size + one.told
        self.full = len(self.waiting) >= WAITING or self.bytes > WAITING_BYTES
        self.some.set()

    def missed(self, count: int) -> None:
        self._lose(count, time.time())

    def batch(self) -> tuple[list[Seen], Lost | None]:
        """The exchanges to write next, and those that were lost between them and the ones behind."""
        found, lost = list[Seen](), None
        while self.waiting and len(found) < BATCH and lost is None:
            one = self.waiting.popleft()
            if isinstance(one, Lost):
                lost = one
            else:
                found.append(one)
        self.bytes -= sum(one.size + one.told for one in found)
        self.full = len(self.waiting) >= WAITING // 2 if self.full else False
        if not self.waiting:
            self.some.clear()
        return found, lost

    def _lose(self, count: int, at: float) -> None:
        """Remembers them at their place."""
        if count:
            last = self.waiting[-1] if self.waiting else None
            if isinstance(last, Lost):
                self.waiting[-1] = Lost(last.dropped + count, last.since, at)
            else:
                self.waiting.append(Lost(count, at, at))
            self.some.set()


class Source(Protocol):
    """Exchanges as lines of JSON, without ends of lines."""

    async def lines(self) -> Lines:
        """Waits for some, LOOK_S at most."""

    def close(self) -> None: ...


class Own:
    """The exchanges of this process."""

    def __init__(
        self, exchanges: Exchanges, where: Expression | None, bodies: Bodies, rule: str | None = None
    ) -> None:
        self.exchanges, self.where, self.bodies = exchanges, where, bodies
        self.rule = None if rule is None else Glob(*named(rule))
        self.reader, self.unjudged = Reader(bodies != "none"), 0
        exchanges.open(self.reader, where)

    async def lines(self) -> Lines:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self.reader.some.wait()
        began = time.thread_time()
        found, lost = self.reader.batch()
        unjudged = 0 if self.where is None else self.where.unjudged - self.unjudged
        self.unjudged += unjudged
        lines = [line(one, self.bodies) for one in found if self.rule is None or _has_acted(self.rule, one)]
        return Lines(lines, lost, unjudged, time.thread_time() - began)

    def close(self) -> None:
        self.exchanges.close(self.reader)


async def live(control: Control, ask: Ask) -> web.StreamResponse:
    if control.live >= MOST:
        raise Refused(503, f"{MOST} readers of /v1/live are there, which is the most: end one of them")
    control.live += 1
    try:
        return await _read(control, ask)
    finally:
        control.live -= 1


async def _read(control: Control, ask: Ask) -> web.StreamResponse:
    query: Filter = ask.query
    request, lead = ask.request, control.lead
    listens = lead is None
    where = None if query.where is None else await condition(control, query.where, listens=listens)
    source: Source = (
        Own(control.exchanges, where, query.bodies, query.rule)
        if lead is None
        else lead.live(query.where, query.bodies, query.rule)
    )
    try:
        response = web.StreamResponse(headers={"Content-Type": LINES, "Cache-Control": "no-store"})
        await response.prepare(request)
        while request.transport is not None and not request.transport.is_closing():
            found = await source.lines()
            text = b"".join(each + b"\n" for each in (*found.lines, *_told(found)))
            if not text:
                continue
            async with asyncio.timeout(UNREAD_S):
                await response.write(text)
            await asyncio.sleep(max(GATHER_S, found.took_s * control.live / SHARE - found.took_s))
    except ConnectionError:
        pass  # the reader has gone
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    finally:
        source.close()
    return response


def _told(found: Lines) -> Iterator[bytes]:
    """Lines about what is missing."""
    if found.lost is not None:
        yield msgspec.json.encode(found.lost._asdict())
    if found.unjudged:
        yield msgspec.json.encode({"unjudged": found.unjudged})


def _has_acted(rule: Glob, one: Seen) -> bool:
    return any(rule(name) for each in treatments_of(one) if each is not None for name in each.rules)


def line(one: Seen, bodies: Bodies) -> bytes:
    """{"exchange": ...}"""
    return b'{"exchange":' + encoded(shown(one, 0, bodies)) + b"}"


ROUTES = [
    Route(
        "GET",
        "/v1/live",
        live,
        "Exchanges as they happen, a JSON object in a line each; a slow reader is told how many it lost",
        Line,
        query=Filter,
        refusals={422: "The expression has a mistake", 503: f"There are {MOST} readers already"},
        streams=True,
        media=LINES,
    )
]
