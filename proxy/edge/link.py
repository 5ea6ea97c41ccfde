"""A client, its broker and the session between them: two asyncio protocols, back to back, on uvloop.

Writing that is paused on one side pauses reading on the other. A half-close travels on, a reset is a reset.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic_ns
from typing import Any, Protocol, cast

from klamm.captures.captured import CLOSED_BY_BROKER, CLOSED_BY_CLIENT, RESET_BY_BROKER, RESET_BY_CLIENT
from klamm.proxy.edge import sockets
from klamm.proxy.edge.ends import BrokerEnd, ClientEnd, End
from klamm.proxy.edge.tap import Tap
from klamm.proxy.session.effects import Effect, Piece, To, carry_out
from klamm.proxy.session.line import FULL, Draw, Item, Line, Out, Until
from klamm.proxy.session.listeners import Listeners
from klamm.proxy.session.paused import Decision, Paused
from klamm.proxy.session.session import Session
from klamm.proxy.session.topology import NodeKey
from klamm.rules.orders import How, Shape

Fields = dict[str, Any] | None
WRITING_S, LOOK_S = 1.0, 0.001  # a reset waits so long for what was written before it, and looks so often


class Host(Protocol):
    """The calls that a link makes of the cluster that it leads to."""

    def opened(self, link: Link) -> bool: ...
    def closed(self, link: Link, reason: str) -> None: ...
    def session(self, link: Link) -> Session: ...
    async def connect(self, link: Link, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport: ...
    async def bind(self) -> None: ...
    def say(self, link: Link, kind: str, api: str, message: str, fields: Fields) -> None: ...
    def tap(self, link: Link) -> Tap | None: ...
    def paused(self, link: Link, to: To, frame: Paused) -> None: ...
    def exchange(self, link: Link, fields: dict[str, Any], listeners: Listeners) -> None: ...
    def failed(self, link: Link, error: Exception) -> None: ...
    def keep(self, task: Awaitable[None]) -> None: ...


class Link:
    """A client, the broker it was led to, and the session between them. `target` None is whichever broker
    answers first.
    """

    def __init__(self, host: Host, target: NodeKey | None) -> None:
        self.host, self.target = host, target
        self.client = ClientEnd(self)
        self.broker: BrokerEnd | None = None
        self.session: Session
        self.number = 0  # of the connection, once it is counted
        self.client_address = self.local_address = ("", 0)
        self.reason: str | None = None
        self.stalled = False  # by a rule: it has no broker, and hears nothing
        self.lines: dict[To, Line] = {}  # where not all may go at once
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.tap: Tap | None = None

    def accepted(self) -> None:
        """The client is there: look for its broker."""
        info = self.client.transport.get_extra_info
        self.client_address = sockets.address(info("peername"))
        self.local_address = sockets.address(info("sockname"))
        if self.host.opened(self):
            self.host.keep(self.safely(self.connect))
        else:
            self.refuse("too many connections")

    async def connect(self) -> None:
        """The broker is connected before a byte of the client is taken; where that fails the client
        gets a reset.
        """
        side = BrokerEnd(self)
        self.session = self.host.session(self)
        self.carry(self.session.connecting(monotonic_ns()))
        self.stalled = "client" in self.lines and self.lines["client"].muted
        if self.stalled:
            self.client.begin(_deaf)
        if self.stalled or self.client.transport.is_closing():
            return
        side.peer, self.client.peer = self.client, side
        side.receive = self.session.from_broker
        side.onward = self._way("client")
        try:
            transport = await self.host.connect(self, lambda: cast(asyncio.Protocol, side))
        except OSError as error:
            if not self.client.gone:
                self.host.say(self, "broker_unreachable", "", str(error), None)
            self._finish("broker unreachable", reset=True)
            return
        if side.gone or self.client.gone:
            transport.abort()
            return
        self.broker = side
        self.listen_in(self.host.tap(self))
        self.client.onward = self._way("broker")
        self.client.begin(self.session.from_client)

    def listen_in(self, tap: Tap | None) -> None:
        """Whom to tell from now on of what comes and goes."""
        for side in filter(None, (self.client, self.broker)):
            side.tap = tap
        self.tap = tap

    def carry(self, effects: list[Effect]) -> None:
        """Carry out what the session asks."""
        carry_out(effects, self)

    def forwards(self, end: End) -> bool:
        """Does what this end sends go on at once, past no line?"""
        return ("broker" if end is self.client else "client") not in self.lines

    def own_time(self, elapsed_ns: int) -> None:
        self.session.own_time(elapsed_ns)

    # Effects, as effects.Edge has them.

    def exchange(self, fields: dict[str, Any], listeners: Listeners) -> None:
        self.host.exchange(self, fields, listeners)

    def event(self, kind: str, api: str, message: str, fields: Fields) -> None:
        self.host.say(self, kind, api, message, fields)

    def bind(self) -> None:
        assert self.broker is not None
        self.broker.pause("bind")
        self.host.keep(self.safely(self._bind))

    def close(self, kind: str, api: str, message: str, fields: Fields) -> None:
        self.host.say(self, kind, api, message, fields)
        self._finish(kind)

    def hold(self, to: To, until: int) -> None:
        self._line(to)
        self._put(to, Until(until))

    def shape(self, to: To, traits: Shape, draw: Draw) -> None:
        self._line(to).mould(traits, draw)

    def pause(self, to: To, frame: Paused) -> None:
        self._line(to)
        self._put(to, frame.place)
        self.host.paused(self, to, frame)

    def keep(self, correlation_id: int) -> None:
        """The capture was told before the bytes (`End.data_received`, `_resumed`)."""

    def cut(self, to: To, how: How) -> None:
        self._put(to, how)

    def resolve(self, to: To, frame: Paused, decision: Decision) -> None:
        """Carry out the decision about a paused frame. Raises as Session.resolve does."""
        effects = self.session.resolve(frame, decision, monotonic_ns())
        self._advance(to)
        self._resumed(effects)

    def send(self, to: To, data: Piece) -> None:
        """Write it, or let it wait in its line."""
        if to in self.lines:
            self._put(to, data)
        elif (side := self._side(to)) is not None and not side.gone and not side.told:
            side.transport.write(data)
            if self.tap is not None:
                self.tap.sent(to, data)

    def _way(self, to: To) -> Callable[[bytes], None]:
        """How bytes go on: through the line if there is one."""
        end = self._side(to)
        assert end is not None
        return partial(self.send, to) if to in self.lines else end.transport.write

    def _ends(self) -> tuple[tuple[To, End | None], ...]:
        return ("client", self.client), ("broker", self.broker)

    def _side(self, to: To) -> End | None:
        return self.client if to == "client" else self.broker

    def _line(self, to: To) -> Line:
        """From now on what goes there goes through a line."""
        if to not in self.lines:
            self.lines[to] = Line()
            source = self.broker if to == "client" else self.client
            if source is not None:
                source.onward = partial(self.send, to)
        return self.lines[to]

    def _put(self, to: To, item: Item) -> None:
        line = self.lines.get(to)
        if line is None:
            self._out(to, [item])  # type: ignore[list-item]
            return
        line.put(item, monotonic_ns())
        self._advance(to)

    def _advance(self, to: To) -> None:
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

    def _end_line(self, to: To, side: End, source: End | None) -> None:
        """From now on what goes there is written at once again."""
        del self.lines[to]
        if source is not None:
            source.onward = side.transport.write

    def _out(self, to: To, out: list[Out]) -> None:
        side = self._side(to)
        if side is None or side.gone:
            return
        for item in out:
            if item in ("fin", "rst"):
                self.silence(0)
                self._cut(item == "rst", WRITING_S)
                return
            elif item == "close":
                side.close()
            elif item == "eof":
                side.tell_end()
            elif not side.told:
                side.transport.write(item)  # type: ignore[arg-type]
                if self.tap is not None:
                    self.tap.sent(to, item)  # type: ignore[arg-type]

    def mute_channel(self, until: int) -> None:
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

    def _resumed(self, effects: list[Effect]) -> None:
        """Effects of bytes that had to wait; a capture has had the bytes when they came."""
        if self.tap is not None:
            self.tap.keep(effects)
        self.carry(effects)

    def silence(self, close_after_ns: int) -> None:
        """Nobody hears anything more, nor is heard; the end of either is seen."""
        for to, side in self._ends():
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

    def half_closed(self, side: End) -> None:
        """One end has sent its last byte: so has the other's counterpart, once all before it is out."""
        ours = side is self.client
        other: End | None = self.broker if ours else self.client
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
        elif self.broker is not None:  # TLS has no half-close: a client still gets the answers it waits for
            self.broker.receive = self._last_answers
            self.broker.wait()
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
        if session.pending() <= cut_short and not session.responses.left:
            self._finish(CLOSED_BY_CLIENT)

    def lost(self, side: End, exc: Exception | None) -> None:
        if exc is None or side.ended:
            self._finish(_closed_by(side))
        else:
            if isinstance(exc, ssl.SSLError):
                self.host.say(self, "tls_failed", "", sockets.why_tls_ended(exc), None)
            self._finish(RESET_BY_CLIENT if side is self.client else RESET_BY_BROKER, reset=True)
        if self.client.gone and (self.broker is None or self.broker.gone):
            for timer in self.timers.values():
                timer.cancel()
            self.host.closed(self, self.reason or "closed")
            if self.tap is not None:
                self.tap.closed(self.reason or "closed")
            for each in filter(None, (self.client, self.broker)):
                each.free()

    def _finish(self, reason: str, reset: bool = False, now: bool = False) -> None:
        """End both sides: what is written still goes out, unless it is a reset; what waits in a line too,
        unless it is `now`.
        """
        self.reason = self.reason or reason
        for to, side in self._ends():
            if side is None or side.gone:
                continue
            line = self.lines.get(to)
            if line is not None and not (reset or now or line.stuck()):
                self._put(to, "close")
                continue
            if reset:
                sockets.reset(side.transport)
            else:
                side.close()

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


def _closed_by(side: End) -> str:
    return CLOSED_BY_CLIENT if isinstance(side, ClientEnd) else CLOSED_BY_BROKER
