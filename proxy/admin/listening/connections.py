"""The connections of an HTTP listener of klamm's own: bounded in number, and none is kept that asks nothing.

They take files and turns of the loop that clients of Kafka need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.client.types import Problem
from klamm.proxy.admin.listening.json_bodies import JSON, encoded

MOST = 64  # at once; one that is idle gives way to a new one
NEW = 64  # more of those that have just come: their requests are still on their way
NEW_S = 0.1
IDLE_S = 20.0  # between two requests, and for the headers of one
BUSY_S = 60.0  # for a request, and for its answer to be taken
LOOK_S = 1.0
PROBES = frozenset({"/healthz", "/readyz"})  # answered at once, however many requests are under way

FULL = encoded(Problem(f"{MOST} connections are open: end one of them, or ask again later", []))
REFUSAL = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    f"Connection: close\r\nContent-Length: {len(FULL)}\r\n\r\n"
).encode() + FULL


class NoRoom(asyncio.Protocol):
    """Refuses a connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        refused = cast(asyncio.Transport, transport)
        refused.write(REFUSAL)
        refused.close()


class Connections:
    """Makes the protocol of each connection with `serve`. `since`: when each began to be idle or busy, the
    longest ago first; `busy` has the requests under way, `silent` those that have asked nothing yet; answers
    from `endless` paths have no end. Times are those of the loop, in s.
    """

    def __init__(self, serve: Callable[[], asyncio.Protocol], endless: frozenset[str]) -> None:
        self.serve, self.endless = serve, endless
        self.since: dict[Any, float] = {}
        self.busy: dict[Any, web.Request] = {}
        self.silent: set[Any] = set()
        self.loop = asyncio.get_running_loop()
        self.timer: asyncio.TimerHandle | None = None

    def accept(self) -> asyncio.Protocol:
        """For a connection that is made now: before, a protocol looks like one whose connection has ended."""
        self._forget_ended()
        self._give_way(1)
        if len(self.since) >= MOST + NEW:
            return NoRoom()
        protocol = self.serve()
        self.since[protocol] = self.loop.time()
        self.silent.add(protocol)
        if self.timer is None:
            self.timer = self.loop.call_later(LOOK_S, self._look)
        return protocol

    @web.middleware
    async def watched(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Knows which connections are busy."""
        protocol = request.protocol
        if len(self.busy) >= MOST and request.path not in PROBES:
            full = web.Response(status=503, body=FULL, content_type=JSON)
            full.force_close()
            return full
        self.busy[protocol] = request
        self.silent.discard(protocol)
        self._begins(protocol)
        try:
            return await handler(request)
        finally:
            self.busy.pop(protocol, None)
            self._begins(protocol)

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def _begins(self, protocol: Any) -> None:
        if self.since.pop(protocol, None) is not None:
            self.since[protocol] = self.loop.time()

    def _give_way(self, coming: int) -> None:
        """End those that are idle for longest, for so many that come; new ones only where there are NEW more
        than MOST.
        """
        idle = [one for one in self.since if one not in self.busy]
        before = self.loop.time() - NEW_S
        old = [one for one in idle if one not in self.silent or self.since[one] < before]
        new = [one for one in idle if one in self.silent and self.since[one] >= before]
        here = len(self.since) + coming
        for one in [*old[: max(0, here - MOST)], *new[: max(0, here - len(old) - MOST - NEW)]]:
            self._end(one)

    def _look(self) -> None:
        """Ends connections that are idle, or busy, for too long, or too many."""
        self._forget_ended()
        self._give_way(0)
        now = self.loop.time()
        for protocol, since in list(self.since.items()):
            request = self.busy.get(protocol)
            if request is not None and request.path in self.endless:
                continue
            unread = request is not None or protocol.transport.get_write_buffer_size()
            if now - since > (BUSY_S if unread else IDLE_S):
                self._end(protocol)
        self.timer = self.loop.call_later(LOOK_S, self._look) if self.since else None

    def _forget_ended(self) -> None:
        """Forget connections that the other side, or aiohttp, has ended."""
        for protocol in list(self.since):
            if protocol.transport is None or protocol.transport.is_closing():
                self._forget(protocol)

    def _end(self, protocol: Any) -> None:
        self._forget(protocol)
        if protocol.transport is not None:
            protocol.transport.abort()

    def _forget(self, protocol: Any) -> None:
        del self.since[protocol]
        self.silent.discard(protocol)
