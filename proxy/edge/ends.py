"""The two ends of a link: the asyncio protocols of the client and of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic_ns
from typing import Final, Protocol, cast

from klamm.captures.captured import CLOSED_BY_BROKER, CLOSED_BY_CLIENT
from klamm.decoders.schema import Side
from klamm.proxy.edge import sockets
from klamm.proxy.edge.tap import Tap
from klamm.proxy.session.effects import Effect, To
from klamm.proxy.session.session import Session

TURN_BYTES = 1 << 18  # after so many bytes other connections have their turn: uvloop reads up to 32 times
TURN_NS = 2_000_000  # after a read that took so long the next one waits for its turn
LONG = 4096  # bytes: shorter reads take no such time, but where a rule evaluates much
UNREAD = 1 << 20  # if more bytes wait for a client, it is not read
SAMPLE = 32  # one in so many reads is timed for klamm's own time
PATIENCE_S = 60.0  # for an end that moves no bytes after the other end has ended
CLOCK: Final = monotonic_ns  # compiled code finds a Final without a look into the module's dict

State = int
WAITING: Final = 0  # the broker is not connected yet: the client's bytes are kept
OPEN: Final = 1  # bytes go through the session
LEAVING: Final = 2  # no request is read: the link waits for the answers that are due
DEAF: Final = 3  # a rule has silenced the connection: bytes are dropped
NEXT: dict[State, tuple[State, ...]] = {
    WAITING: (OPEN, DEAF),
    OPEN: (LEAVING, DEAF),
    LEAVING: (OPEN, LEAVING, DEAF),
    DEAF: (DEAF,),
}


class Between(Protocol):
    """The calls that an end makes of the link between it and the other end."""

    def accepted(self) -> None: ...
    def carry(self, effects: list[Effect]) -> None: ...
    def send(self, to: To, data: bytes) -> None: ...
    def answered(self) -> None: ...
    def half_closed(self, end: End) -> None: ...
    def lost(self, end: End, exc: Exception | None) -> None: ...
    def later(self, go_on: Callable[[], None]) -> None: ...
    def failed(self, error: Exception) -> None: ...
    def finish(self, reason: str, reset: bool = False, now: bool = False) -> None: ...


class End:
    """One end of a link, an asyncio.Protocol by its methods: a compiled class cannot inherit from Python's.

    `state` decides about the bytes that come from this end. Bytes that go on unchanged are written at once
    while `direct`, else they go through the link's line. `tap`: a capture, which gets all bytes.
    """

    side: Side  # of the frames that it sends
    to: To  # the side that they go to
    closed: str  # why a link ends that this end closes
    first: State
    __deletable__ = ["link", "peer", "session", "onward"]  # noqa: RUF012  # for mypyc: see `free`

    def __init__(self, link: Between) -> None:
        self.link = link
        self.transport: asyncio.Transport
        self.peer: End
        self.session: Session
        self.onward: Callable[[bytes], None]  # writes to the peer
        self.state = self.first
        self.direct = True
        self.reads = 0
        self.taken = 0  # bytes since other connections had their turn
        self.owes = False  # the read before took very much: the next one waits for its turn
        self.late = b""  # the bytes that wait for their turn
        self.tap: Tap | None = None
        self.ended = False  # this end has sent its last byte
        self.eof_sent = False  # this end has been told that the other has sent its last byte
        self.gone = False
        self.paused_for: set[str] = set()
        self.patience: asyncio.TimerHandle | None = None

    def join(self, peer: End, session: Session) -> None:
        """Set the other end, and the session between the two."""
        self.peer, self.session = peer, session

    def become(self, state: State) -> None:
        if state not in NEXT[self.state]:
            raise AssertionError(f"an end of a link in state {self.state} cannot become {state}")
        self.state = state

    def through_session(self, data: bytes, now: int) -> bytes | list[Effect]:
        raise NotImplementedError

    def overdrawn(self) -> bool:
        """Did the last frame from this end take very much?"""
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        if self.state == WAITING:
            self.keep(data)
            return
        if self.owes:
            self.wait_for_turn(data)
            return
        now = CLOCK()
        try:
            effects = [] if self.state == DEAF else self.through_session(data, now)
            passed = effects is data
            if self.tap is not None:
                if not passed:
                    self.tap.keep(effects)  # type: ignore[arg-type]
                self.tap.came(self.side, data, now, passed and self.direct)
            if not passed:
                self.link.carry(effects)  # type: ignore[arg-type]
            elif self.direct:
                self.onward(data)
            else:
                self.link.send(self.to, data)
        except Exception as error:
            self.link.failed(error)
            return
        self.reads += 1
        if not self.reads % SAMPLE:
            self.session.own_time(CLOCK() - now)
        self.taken += len(data)
        if (len(data) >= LONG and CLOCK() - now >= TURN_NS) or self.overdrawn():
            self.owes, self.taken = True, 0
        elif self.taken >= TURN_BYTES:
            self.taken = 0
            self.pause("round")
            self.link.later(partial(self.resume, "round"))
        if self.state == LEAVING:
            asyncio.get_running_loop().call_soon(self.link.answered)  # after the bytes are written

    def wait_for_turn(self, data: bytes) -> None:
        """Take these bytes when other connections have had their turn: what comes like the frame before may
        take as much, and as many ends as there are would take it in one pass of the loop.
        """
        if not self.late:
            self.pause("late")
            self.link.later(self.take_late)
        self.late += data

    def take_late(self) -> None:
        data, self.late = self.late, b""
        if data and not self.gone:
            self.owes = False
            self.resume("late")
            self.data_received(data)

    def keep(self, data: bytes) -> None:
        """Keep bytes that came before the broker is connected."""
        raise NotImplementedError

    def pause(self, why: str) -> None:
        """Stop reading from this end until `resume` has been called for each reason."""
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

    def crowded(self) -> None:
        """Called after a write: pause an end for which too many bytes wait."""

    def eof_received(self) -> bool:
        self.take_late()
        self.ended = True
        self.link.half_closed(self)
        return self.transport.get_extra_info("sslcontext") is None

    def tell_end(self) -> None:
        """Tell this end that the other has sent its last byte."""
        self.eof_sent = True
        self.transport.write_eof()
        self.wait()

    def close(self) -> None:
        """Close it once all written bytes are sent."""
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.wait()

    def wait(self) -> None:
        """Wait for its end while it moves bytes: one that hangs would keep two files open for ever."""
        if self.patience is not None:
            self.patience.cancel()
        self.patience = asyncio.get_running_loop().call_later(PATIENCE_S, self.overdue, self.progress())

    def progress(self) -> tuple[int, int]:
        """A value that changes when this end sends or takes bytes."""
        return self.reads, sockets.unsent(self.transport)

    def overdue(self, before: tuple[int, int]) -> None:
        """PATIENCE_S are over: end the link if this end has moved no bytes since then."""
        if self.gone:
            return
        if self.progress() == before:
            self.link.finish("timed out", reset=True)
        else:
            self.wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.patience is not None:
            self.patience.cancel()
        self.take_late()
        self.gone = True
        self.link.lost(self, exc)

    def free(self) -> None:
        """The link is over: drop all references, so that no cycle waits for the garbage collector."""
        for name in ("link", "peer", "session", "onward"):
            if hasattr(self, name):
                delattr(self, name)


class ClientEnd(End):
    """The end of a client; a listening port makes one for each connection."""

    side: Side = "request"
    to: To = "broker"
    closed: str = CLOSED_BY_CLIENT
    first: State = WAITING

    def __init__(self, link: Between) -> None:
        super().__init__(link)
        self.early: list[bytes] = []

    def through_session(self, data: bytes, now: int) -> bytes | list[Effect]:
        return self.session.requests.receive(data, now)

    def overdrawn(self) -> bool:
        return self.session.requests.turns.overdrawn()

    def keep(self, data: bytes) -> None:
        """uvloop begins to read after connection_made, whatever that paused: the first read pauses it."""
        self.early.append(data)
        self.transport.pause_reading()

    def crowded(self) -> None:
        """Stop reading from a client that does not read klamm's own answers. Its broker is paused long before
        so many bytes wait.
        """
        if self.transport.get_write_buffer_size() > UNREAD:
            self.pause("unread")

    def resume_writing(self) -> None:
        super().resume_writing()
        self.resume("unread")

    def begin(self) -> None:
        """The broker is connected, or never will be: take the early bytes of the client, and go on."""
        if self.state == WAITING:
            self.become(OPEN)
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
    """The end of a broker; made for each client once it has connected."""

    side: Side = "response"
    to: To = "client"
    closed: str = CLOSED_BY_BROKER
    first: State = OPEN

    def through_session(self, data: bytes, now: int) -> bytes | list[Effect]:
        return self.session.responses.receive(data, now)

    def overdrawn(self) -> bool:
        return self.session.responses.turns.overdrawn()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport = cast(asyncio.Transport, transport)  # uvloop's are none by type
        sockets.keep_alive(transport)
