"""Sockets to sessions: two asyncio protocols a connection, back to back, on uvloop.

Writing that is paused on one side pauses reading on the other. A half-close travels on, a reset is a reset.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic_ns
from typing import TYPE_CHECKING, cast

from klamm.captures.captured import CLOSED_BY_BROKER, CLOSED_BY_CLIENT, RESET_BY_BROKER, RESET_BY_CLIENT
from klamm.proxy import sockets
from klamm.proxy.connection import Effect
from klamm.proxy.discovery import why_tls_ended
from klamm.proxy.held import Decision, Held
from klamm.proxy.host import Host
from klamm.proxy.line import FULL, End, Hold, Item, Line
from klamm.proxy.session import Session
from klamm.proxy.sides import BrokerSide, Side
from klamm.proxy.topology import NodeKey
from klamm.rules.verdict import How

if TYPE_CHECKING:
    from klamm.proxy.capturing import Tap

WRITING_S, LOOK_S = 1.0, 0.001  # a reset waits so long for what was written before it, and looks so often


class ClientSide(Side):
    """Made by a listener for each client."""

    def __init__(self, host: Host, target: NodeKey | None) -> None:
        super().__init__(Link(host, target, self))
        self.early: list[bytes] = []
        self.receive = self._wait

    def _wait(self, data: bytes, _: int) -> list[Effect]:
        """uvloop begins to read after connection_made, whatever that paused: the first read pauses it."""
        self.early.append(data)
        self.transport.pause_reading()
        return []

    def begin(self, receive: Callable[[bytes, int], bytes | list[Effect]]) -> None:
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
        peer = transport.get_extra_info("peername")
        if peer is None:  # reset before it was accepted
            transport.abort()
            return
        self.pause("connect")
        link = self.link
        link.client_address = sockets.address(peer)
        link.local_address = sockets.address(transport.get_extra_info("sockname"))
        sockets.keep_alive(transport)
        if link.host.opened(link):
            link.host.keep(link.safely(link.connect))
        else:
            link.refuse("too many connections")


class Link:
    """A client, the broker it was led to, and the session between them. `target` None is whichever broker
    answers first.
    """

    def __init__(self, host: Host, target: NodeKey | None, client: ClientSide) -> None:
        self.host, self.target, self.client = host, target, client
        self.broker: BrokerSide | None = None
        self.session: Session
        self.number = 0  # of the connection, once it is counted
        self.client_address = self.local_address = ("", 0)
        self.reason: str | None = None
        self.stalled = False  # by a rule: it has no broker, and hears nothing
        self.lines: dict[str, Line] = {}  # to the "client" and to the "broker", where not all may go at once
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.tap: Tap | None = None

    async def connect(self) -> None:
        """The broker is connected before a byte of the client is taken; where that fails the client
        gets a reset.
        """
        side = BrokerSide(self)
        self.session = self.host.session(self)
        self.carry(self.session.connecting(monotonic_ns()))
        self.stalled = "client" in self.lines and self.lines["client"].muted
        if self.stalled:
            self.client.begin(_deaf)
        if self.stalled or self.client.transport.is_closing():
            return
        side.peer, self.client.peer = self.client, side
        side.receive = self.session.from_broker
        side.onward = partial(self.send, "client") if "client" in self.lines else self.client.transport.write
        try:
            transport = await self.host.connect(self, lambda: side)
        except OSError as error:
            if not self.client.gone:
                self.host.say(self, "broker_unreachable", "", str(error))
            self._finish("broker unreachable", reset=True)
            return
        if side.gone or self.client.gone:
            transport.abort()
            return
        self.broker = side
        self.listen_in(self.host.tap(self))
        self.client.onward = partial(self.send, "broker") if "broker" in self.lines else transport.write
        self.client.begin(self.session.from_client)

    def listen_in(self, tap: Tap | None) -> None:
        """Whom to tell from now on of what comes and goes."""
        for side in filter(None, (self.client, self.broker)):
            side.tap = tap
        self.tap = tap

    def carry(self, effects: list[Effect]) -> None:
        for effect in effects:
            kind = effect[0]
            if kind == "send":
                self.send(effect[1], effect[2])
            elif kind == "exchange":
                self.host.exchange(self, effect[1], effect[2])
            elif kind == "problem":
                self.host.say(self, *effect[1:])
            elif kind == "bind":
                assert self.broker is not None
                self.broker.pause("bind")
                self.host.keep(self.safely(self._bind))
            elif kind == "close":
                self.host.say(self, *effect[1:])
                self._finish(effect[1])
            elif kind == "event":
                self.host.say(self, *effect[1:])
            elif kind == "hold":
                self._line(effect[1])
                self._put(effect[1], Hold(effect[2]))
            elif kind == "mute_channel":
                self._mute_channel(effect[1])
            elif kind == "shape":
                self._line(effect[1]).mould(effect[2], effect[3])
            elif kind == "pause":
                self._line(effect[1])
                self._put(effect[1], effect[2].gap)
                self.host.hold(self, effect[1], effect[2])
            elif kind == "cut":
                self._put(effect[1], effect[2])
            elif kind == "mute":
                self._mute(effect[1])

    def resolve(self, to: str, held: Held, decision: Decision) -> None:
        """A frame that was paused goes on as is said. Raises as Session.resolve does."""
        effects = self.session.resolve(held, decision, monotonic_ns())
        self._advance(to)
        self.carry(effects)

    def send(self, to: str, data: bytes | memoryview) -> None:
        """Write it, or let it wait in its line."""
        if to in self.lines:
            self._put(to, data)
        elif (side := self._side(to)) is not None and not side.gone and not side.told:
            side.transport.write(data)
            if self.tap is not None:
                self.tap.sent(to, data)

    def _side(self, to: str) -> Side | None:
        return self.client if to == "client" else self.broker

    def _line(self, to: str) -> Line:
        """From now on what goes there goes through a line."""
        if to not in self.lines:
            self.lines[to] = Line()
            source = self.broker if to == "client" else self.client
            if source is not None:
                source.onward = partial(self.send, to)
        return self.lines[to]

    def _put(self, to: str, item: Item) -> None:
        line = self.lines.get(to)
        if line is None:
            self._out(to, [item])  # type: ignore[list-item]
            return
        line.put(item, monotonic_ns())
        self._advance(to)

    def _advance(self, to: str) -> None:
        """Let go what may go, and come back for the rest."""
        line, side = self.lines.get(to), self._side(to)
        source = self.broker if to == "client" else self.client
        if line is None or side is None or side.gone:
            return
        now = monotonic_ns()
        out, wake = line.take(now)
        self._out(to, out)
        if (timer := self.timers.pop(to, None)) is not None:
            timer.cancel()
        if wake is not None and not side.gone:
            self.timers[to] = asyncio.get_running_loop().call_later((wake - now) / 1e9, self._advance, to)
        if source is not None and line.size > FULL:
            source.pause("line")
        elif source is not None and line.size <= FULL // 2:
            source.resume("line")
        if line.idle() and not side.gone:
            self._end_line(to, side, source)

    def _end_line(self, to: str, side: Side, source: Side | None) -> None:
        """From now on what goes there is written at once again."""
        del self.lines[to]
        if source is not None:
            source.onward = side.transport.write

    def _out(self, to: str, out: list[bytes | memoryview | How | End]) -> None:
        side = self._side(to)
        if side is None or side.gone:
            return
        for item in out:
            if item in ("fin", "rst"):
                self._mute(0)
                self._cut(item == "rst", WRITING_S)
                return
            elif item == "close":
                side.transport.close()
            elif item == "eof":
                side.told = True
                side.transport.write_eof()
            elif not side.told:
                side.transport.write(item)  # type: ignore[arg-type]
                if self.tap is not None:
                    self.tap.sent(to, item)  # type: ignore[arg-type]

    def _mute_channel(self, until: int) -> None:
        """Read nothing from the client before; as brokers do, not even its end."""
        self.client.pause("quota")
        if (timer := self.timers.pop("quota", None)) is not None:
            timer.cancel()
        wait_s = max(0, until - monotonic_ns()) / 1e9
        self.timers["quota"] = asyncio.get_running_loop().call_later(wait_s, self._unmute)

    def _unmute(self) -> None:
        client = self.client
        if client.gone:
            return
        self._resumed(self.session.unmute(monotonic_ns()))
        if self.session.muted:
            return
        client.resume("quota")
        if client.ended:
            self.half_closed(client)

    def _resumed(self, effects: bytes | list[Effect]) -> None:
        """What comes of bytes that had to wait; who captures has had them when they came."""
        if self.tap is not None:
            self.tap.keep(effects)
        self.carry(effects)  # type: ignore[arg-type]

    def _mute(self, close_after_ns: int) -> None:
        """Nobody hears anything more, nor is heard; the end of either is seen."""
        for to, side in (("client", self.client), ("broker", self.broker)):
            self._line(to).mute()
            if side is not None:
                side.receive = _deaf
        if close_after_ns:
            later = asyncio.get_running_loop().call_later
            self.timers["mute"] = later(close_after_ns / 1e9, self._finish, "cut by a rule")

    def _cut(self, reset: bool, patience_s: float) -> None:
        """End both sides; a reset, which drops what is not out yet, when all is, or patience ends."""
        sides = [side for side in (self.client, self.broker) if side is not None and not side.gone]
        if reset and patience_s > 0 and any(sockets.unsent(side.transport) for side in sides):
            later = asyncio.get_running_loop().call_later
            self.timers["cut"] = later(LOOK_S, self._cut, reset, patience_s - LOOK_S)
        else:
            self._finish("cut by a rule", reset=reset, now=True)

    async def safely(self, work: Callable[[], Awaitable[None]]) -> None:
        """A defect of klamm ends this connection, and no other."""
        try:
            await work()
        except Exception as error:
            self.failed(error)

    def failed(self, error: Exception) -> None:
        self.host.failed(self, error)
        self._finish("defect", reset=True)

    async def _bind(self) -> None:
        await self.host.bind()
        broker = self.broker
        if broker is None or broker.gone:
            return
        self._resumed(self.session.bound(monotonic_ns()))
        self._answered()
        broker.resume("bind")

    def half_closed(self, side: Side) -> None:
        """One end has sent its last byte: so has the other's counterpart, once all before it is out."""
        ours = side is self.client
        other: Side | None = self.broker if ours else self.client
        if any(line.stuck() for line in self.lines.values()):
            self._finish(_closed_by(side), now=True)
            return
        if other is None or (ours and self.session.muted):  # begin() and _unmute() come back to it
            return
        self.carry(self.session.client_closed() if ours else self.session.broker_closed())
        self.reason = self.reason or _closed_by(side)
        if other.gone or other.transport.is_closing():
            return
        if other.ended:
            self._finish(self.reason)
        elif other.transport.can_write_eof():
            self._put("broker" if ours else "client", "eof")
        elif (
            self.broker is not None
        ):  # TLS has no half-close: a client that waits for answers still gets them
            self.broker.receive = self._last_answers
            self._answered()

    def _last_answers(self, data: bytes, now: int) -> bytes | list[Effect]:
        effects = self.session.from_broker(data, now)
        asyncio.get_running_loop().call_soon(self._answered)  # when they are on their way
        return effects

    def _answered(self) -> None:
        """Where the broker cannot be told that the client has ended, it is left when it has answered all."""
        broker, session = self.broker, self.session
        if not self.client.ended or broker is None or broker.told:
            return
        cut_short = session.requests.left > 0  # the last request will never be answered
        if session.in_flight() <= cut_short and not session.responses.left:
            self._finish(CLOSED_BY_CLIENT)

    def lost(self, side: Side, exc: Exception | None) -> None:
        if exc is None or side.ended:
            self._finish(_closed_by(side))
        else:
            if isinstance(exc, ssl.SSLError):
                self.host.say(self, "tls_failed", "", why_tls_ended(exc))
            self._finish(RESET_BY_CLIENT if side is self.client else RESET_BY_BROKER, reset=True)
        if self.client.gone and (self.broker is None or self.broker.gone):
            for timer in self.timers.values():
                timer.cancel()
            self.host.closed(self, self.reason or "closed")
            if self.tap is not None:
                self.tap.closed(self.reason or "closed")
            for each in filter(None, (self.client, self.broker)):  # no cycle waits for the collector
                vars(each).update(link=None, peer=None, receive=None, onward=None)

    def _finish(self, reason: str, reset: bool = False, now: bool = False) -> None:
        """End both sides: what is written still goes out, unless it is a reset; what waits in a line too,
        unless it is `now`.
        """
        self.reason = self.reason or reason
        for to, side in (("client", self.client), ("broker", self.broker)):
            if side is None or side.gone:
                continue
            line = self.lines.get(to)
            if line is not None and not (reset or now or line.stuck()):
                self._put(to, "close")
                continue
            if reset:
                sockets.reset(side.transport)
            else:
                side.transport.close()

    def unanswered(self) -> Counter[tuple[str, str]]:
        """Requests that wait for their answers, by API and client id."""
        return Counter() if self.broker is None else self.session.unanswered()

    def end(self, reason: str) -> None:
        """End both sides; what is written still goes out."""
        self._finish(reason)

    def refuse(self, reason: str) -> None:
        self._finish(reason, reset=True)

    def shut(self) -> None:
        """klamm stops."""
        self._finish("klamm stopped", now=True)


def _deaf(data: bytes, now: int) -> list[Effect]:
    return []


def _closed_by(side: Side) -> str:
    return CLOSED_BY_CLIENT if isinstance(side, ClientSide) else CLOSED_BY_BROKER
