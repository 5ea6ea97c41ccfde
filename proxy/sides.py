"""The two ends of a link, as asyncio sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING, cast

from klamm.proxy import sockets
from klamm.proxy.connection import Effect

if TYPE_CHECKING:
    from klamm.proxy.capturing import Tap
    from klamm.proxy.transport import Link

SAMPLE = 32  # one in so many reads is timed for klamm's own time


class Side(asyncio.Protocol):
    """One end of a link. `tap`: who is told of all that it says."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.transport: asyncio.Transport
        self.peer: Side
        self.turn = 0
        self.receive: Callable[[bytes, int], bytes | list[Effect]]
        self.onward: Callable[[bytes], None]
        self.tap: Tap | None = None
        self.ended = False  # this end has sent its last byte
        self.told = False  # it was told that the other end has
        self.gone = False
        self.paused_for: set[str] = set()

    def data_received(self, data: bytes) -> None:
        now = monotonic_ns()
        try:
            effects = self.receive(data, now)
            if self.tap is not None:
                self.tap.came(self, data, now, effects)
            if effects is data:
                self.onward(data)
            else:
                self.link.carry(effects)  # type: ignore[arg-type]
        except Exception as error:
            self.link.failed(error)
            return
        self.turn += 1
        if not self.turn % SAMPLE:
            self.link.session.own_time(monotonic_ns() - now)

    def pause(self, why: str) -> None:
        """Read no more from this end for as long as there is a reason."""
        if not self.paused_for and not self.gone:
            self.transport.pause_reading()
        self.paused_for.add(why)

    def resume(self, why: str) -> None:
        if why in self.paused_for:
            self.paused_for.remove(why)
            if not self.paused_for and not self.gone and not self.transport.is_closing():
                self.transport.resume_reading()

    def pause_writing(self) -> None:
        self.peer.pause("backpressure")

    def resume_writing(self) -> None:
        self.peer.resume("backpressure")

    def eof_received(self) -> bool:
        self.ended = True
        self.link.half_closed(self)
        return self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self.link.lost(self, exc)


class BrokerSide(Side):
    """Made for each client, when it has come."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast(asyncio.Transport, transport)  # uvloop's are none by type
        sockets.keep_alive(transport)
