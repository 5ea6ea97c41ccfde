"""The two ends of a link, as asyncio sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic_ns
from typing import Protocol, cast

from klamm.decoders.schema import Side
from klamm.proxy.edge import sockets
from klamm.proxy.edge.tap import Tap
from klamm.proxy.session.effects import Effect

SAMPLE = 32  # one in so many reads is timed for klamm's own time
PATIENCE_S = 60.0  # with an end that neither sends nor takes anything after the other end has ended

Receive = Callable[[bytes, int], bytes | list[Effect]]


class Between(Protocol):
    """The calls that an end makes of the link between it and the other end."""

    def accepted(self) -> None: ...
    def carry(self, effects: list[Effect]) -> None: ...
    def forwards(self, end: End) -> bool: ...
    def own_time(self, elapsed_ns: int) -> None: ...
    def half_closed(self, end: End) -> None: ...
    def lost(self, end: End, exc: Exception | None) -> None: ...
    def failed(self, error: Exception) -> None: ...
    def refuse(self, reason: str) -> None: ...


class End:
    """One end of a link, an asyncio.Protocol by its methods: a compiled class cannot inherit from Python's.

    `side`: what it sends. `tap`: a capture, which gets all that it sends.
    """

    side: Side
    __deletable__ = ["link", "peer", "receive", "onward"]  # noqa: RUF012  # for mypyc: see `free`

    def __init__(self, link: Between) -> None:
        self.link = link
        self.transport: asyncio.Transport
        self.peer: End
        self.turn = 0
        self.receive: Receive
        self.onward: Callable[[bytes], None]
        self.tap: Tap | None = None
        self.ended = False  # this end has sent its last byte
        self.told = False  # it was told that the other end has
        self.gone = False
        self.paused_for: set[str] = set()
        self.patience: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        now = monotonic_ns()
        try:
            effects = self.receive(data, now)
            if self.tap is not None:
                self._capture(self.tap, data, now, effects)
            if effects is data:
                self.onward(data)
            else:
                self.link.carry(effects)  # type: ignore[arg-type]
        except Exception as error:
            self.link.failed(error)
            return
        self.turn += 1
        if not self.turn % SAMPLE:
            self.link.own_time(monotonic_ns() - now)

    def _capture(self, tap: Tap, data: bytes, now: int, effects: bytes | list[Effect]) -> None:
        passed = effects is data
        if not passed:
            tap.keep(effects)  # type: ignore[arg-type]
        tap.came(self.side, data, now, passed and self.link.forwards(self))

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

    def tell_end(self) -> None:
        """The other end has sent its last byte."""
        self.told = True
        self.transport.write_eof()
        self.wait()

    def close(self) -> None:
        """When all is out that was written."""
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.wait()

    def wait(self) -> None:
        """For its end, as long as it does something: one that hangs would keep two open files for ever."""
        if self.patience is not None:
            self.patience.cancel()
        self.patience = asyncio.get_running_loop().call_later(PATIENCE_S, self.overdue, self.progress())

    def progress(self) -> tuple[int, int]:
        """This changes when it sends or takes something."""
        return self.turn, sockets.unsent(self.transport)

    def overdue(self, before: tuple[int, int]) -> None:
        """It has been waited for since then."""
        if self.gone:
            return
        if self.progress() == before:
            self.link.refuse("timed out")
        else:
            self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.patience is not None:
            self.patience.cancel()
        self.gone = True
        self.link.lost(self, exc)

    def free(self) -> None:
        """The link is over: hold on to nothing, so that no cycle waits for the garbage collector."""
        for name in ("link", "peer", "receive", "onward"):
            if hasattr(self, name):
                delattr(self, name)


class ClientEnd(End):
    """Made by a listening port for each client."""

    side: Side = "request"

    def __init__(self, link: Between) -> None:
        super().__init__(link)
        self.early: list[bytes] = []
        self.receive = self._wait

    def _wait(self, data: bytes, _: int) -> list[Effect]:
        """uvloop begins to read after connection_made, whatever that paused: the first read pauses it."""
        self.early.append(data)
        self.transport.pause_reading()
        return []

    def begin(self, receive: Receive) -> None:
        """The broker is there: take what the client has sent, and go on."""
        self.receive = receive
        early, self.early = b"".join(self.early), []
        if early:
            self.data_received(early)
        self.resume("connect")
        if self.ended:
            self.link.half_closed(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast(asyncio.Transport, transport)  # uvloop's are none by type
        if transport.get_extra_info("peername") is None:  # reset before it was accepted
            transport.abort()
            return
        self.pause("connect")
        sockets.keep_alive(transport)
        self.link.accepted()


class BrokerEnd(End):
    """Made for each client, when it has come."""

    side: Side = "response"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast(asyncio.Transport, transport)  # uvloop's are none by type
        sockets.keep_alive(transport)
