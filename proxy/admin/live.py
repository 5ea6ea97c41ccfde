"""/v1/live: exchanges as they happen, a line of JSON each, for as long as the caller reads."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Literal

import msgspec
from aiohttp import web
from msgspec import Struct

from klamm.client.types import Line
from klamm.proxy.admin.exchanges import condition
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.control.exchange import Seen, body, told

LINES = "application/jsonl"
WAITING = 1000  # exchanges for one reader; what comes when they are too many is counted
WAITING_BYTES = 4 << 20
BATCH = 100  # lines in one write
GATHER_S = 0.1  # between two writes, for what comes together
SHARE = 0.05  # of the loop's time, at most, goes into telling
LOOK_S = 1.0  # between two looks at whether the reader is still there


class Filter(Struct, frozen=True, forbid_unknown_fields=True):
    """`where` is an expression as in rules; `bodies` are told as values, or raw."""

    where: str | None = None
    bodies: Literal["none", "values", "raw"] = "none"


class Reader:
    """What waits for one reader."""

    def __init__(self) -> None:
        self.waiting: deque[Seen] = deque()
        self.bytes = self.dropped = 0
        self.full = False
        self.some = asyncio.Event()

    def take(self, one: Seen) -> None:
        if self.full:
            self.dropped += 1
        else:
            self.waiting.append(one)
            self.bytes += one.size
            self.full = len(self.waiting) >= WAITING or self.bytes > WAITING_BYTES
        self.some.set()

    def missed(self, count: int) -> None:
        self.dropped += count
        self.some.set()

    def batch(self) -> tuple[list[Seen], int]:
        """What is written next, and how many exchanges were lost after it."""
        found = [self.waiting.popleft() for _ in range(min(BATCH, len(self.waiting)))]
        self.bytes -= sum(one.size for one in found)
        self.full = len(self.waiting) >= WAITING // 2 if self.full else False
        dropped = 0
        if not self.waiting:
            dropped, self.dropped = self.dropped, 0
            self.some.clear()
        return found, dropped


async def live(control: Control, ask: Ask) -> web.StreamResponse:
    query: Filter = ask.query
    where = None if query.where is None else await condition(query.where)
    reader, request = Reader(), ask.request
    control.exchanges.open(reader, where, query.bodies != "none")
    try:
        response = web.StreamResponse(
            headers={"Content-Type": "application/jsonl", "Cache-Control": "no-store"}
        )
        await response.prepare(request)
        while request.transport is not None and not request.transport.is_closing():
            try:
                async with asyncio.timeout(LOOK_S):
                    await reader.some.wait()
            except TimeoutError:
                continue
            began = time.perf_counter()
            found, dropped = reader.batch()
            lines = [line(one, query.bodies) for one in found]
            if dropped:
                lines.append(msgspec.json.encode({"dropped": dropped}))
            text = b"".join(each + b"\n" for each in lines)
            await response.write(text)
            took_s = time.perf_counter() - began
            await asyncio.sleep(max(GATHER_S, took_s / SHARE - took_s))
    except ConnectionError:
        pass  # the reader has gone
    finally:
        control.exchanges.close(reader)
    return response


def line(one: Seen, bodies: str) -> bytes:
    """{"exchange": ...}"""
    said = [
        None if bodies == "none" or frame is None else body(frame, bodies == "raw")
        for frame in (one.request, one.response)
    ]
    return b'{"exchange":' + msgspec.json.encode(told(one, 0, *said)) + b"}"


ROUTES = [
    Route(
        "GET",
        "/v1/live",
        live,
        "Exchanges as they happen, a JSON object in a line each; a slow reader is told how many it lost",
        Line,
        query=Filter,
        refusals={422: "The expression has a mistake"},
        streams=True,
    )
]
