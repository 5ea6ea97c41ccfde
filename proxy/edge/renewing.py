"""Lets klamm speak with a broker in the middle of a link, between two exchanges of its client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from klamm.proxy.edge.draining import Linked
from klamm.proxy.edge.ends import DEAF, LEAVING, OPEN, End
from klamm.proxy.edge.exchanging import Exchanging

LOOK_S = 0.05  # between two looks at what no byte tells


class Renewed(Linked, Protocol):
    """The parts of a link that it needs, beside those of `Linked`."""

    draining: Any

    def unmute(self) -> None: ...


class Renewing:
    """The link reads no requests until all that the broker got are answered; then `work` has the connection
    to itself, and the requests go on behind it. A broker reads one request after the other, so they would
    have waited there too. `start` runs the work.
    """

    lingers = False

    def __init__(
        self,
        link: Renewed,
        broker: End,
        work: Callable[[Exchanging], Awaitable[None]],
        start: Callable[[Callable[[], Awaitable[None]]], None],
    ) -> None:
        self.link, self.broker, self.work, self.start = link, broker, work, start
        self.begun = False
        link.session.drain()
        for end in (link.client, broker):
            if end.state == OPEN:
                end.become(LEAVING)

    def look(self) -> None:
        """Bytes have come: begin, if nothing is due any more."""
        link, broker = self.link, self.broker
        if self.begun or link.draining is not self or DEAF in (link.client.state, broker.state):
            return
        if link.session.requests.left:
            return
        link.client.pause("drain")
        if link.session.pending() or link.session.responses.left:
            return
        line = link.lines.get("broker")
        if broker.paused_for or (line is not None and line.waiting):
            link.timers["renewal"] = asyncio.get_running_loop().call_later(LOOK_S, self.look)
            return
        self.begun = True
        self.start(self._work)

    async def _work(self) -> None:
        broker = self.broker
        exchanging = Exchanging(broker)
        exchanging.connection_made(broker.transport)
        broker.transport.set_protocol(exchanging)
        try:
            await self.work(exchanging)
        finally:
            if not broker.gone:
                broker.transport.set_protocol(broker)  # type: ignore[arg-type]
            self._go_on()

    def _go_on(self) -> None:
        link = self.link
        if link.draining is not self or self.broker.gone or link.client.gone:
            return
        link.draining = None
        for end in (link.client, self.broker):
            if end.state == LEAVING:
                end.become(OPEN)
        link.client.resume("drain")
        quota = link.timers.get("quota")
        if quota is None or quota.when() <= asyncio.get_running_loop().time():  # else it does so
            link.unmute()
