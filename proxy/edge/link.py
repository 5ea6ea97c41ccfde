"""A client, its broker and the session between them: two asyncio protocols, back to back, on uvloop.

If writing to one side is paused, reading from the other is paused. Half-closes and resets are passed on.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from time import monotonic_ns
from typing import Any, cast

from klamm.captures.captured import CLOSED_BY_CLIENT
from klamm.decoders.schema import Side
from klamm.proxy.edge import sockets
from klamm.proxy.edge.draining import Draining
from klamm.proxy.edge.ends import DEAF, LEAVING, OPEN, PATIENCE_S, BrokerEnd, ClientEnd, End
from klamm.proxy.edge.host import Fields, Host
from klamm.proxy.edge.lines import Lines
from klamm.proxy.edge.renewing import Renewing
from klamm.proxy.edge.sockets import Arrival
from klamm.proxy.edge.tap import Tap
from klamm.proxy.session.effects import Effect, Piece, To, carry_out
from klamm.proxy.session.line import Draw, Until
from klamm.proxy.session.observing.listeners import Listeners
from klamm.proxy.session.paused import Decision, Paused
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.proxy.session.session import Session
from klamm.rules.orders import How, Shape

WRITING_S, LOOK_S = 1.0, 0.001  # a reset waits so long until earlier bytes are sent, and checks so often


class Link:
    """A client, the broker it was led to, and the session between them. `target` None: the broker that
    answers first. `came` None: the addresses are those of the client's socket.
    """

    def __init__(self, host: Host[Link], target: NodeKey | None, came: Arrival | None = None) -> None:
        self.host, self.target, self.came, self.later = host, target, came, host.later
        self.client = ClientEnd(self)
        self.broker: BrokerEnd | None = None
        self.session: Session
        self.number, self.software = 0, ""  # once it is counted; the client's, where klamm told versions
        self.client_address = self.local_address = ("", 0)
        self.principal: str | None = None  # of the client's certificate
        self.reason: str | None = None
        self.finished = False  # klamm has begun to end both sides: how each of them ends says nothing
        self.lines = Lines(self)
        self.timers: dict[str, asyncio.TimerHandle] = {}
        self.tap: Tap | None = None
        self.draining: Draining | Renewing | None = None  # while no request is read

    def accepted(self) -> None:
        """A client has connected: connect to its broker."""
        self.came = self.came or sockets.arrival(self.client.transport)
        self.client_address, self.local_address, self.opaque, self.named, self.number = self.came
        if self.host.opened(self):
            self.host.keep(self.safely(self.connect))
        else:
            self.finish("too many connections", reset=True)

    async def connect(self) -> None:
        """Connect to the broker before reading a byte of the client. If that fails, the client gets a
        reset.
        """
        side = BrokerEnd(self)
        self.session = self.host.session(self)
        side.join(self.client, self.session)
        self.client.join(side, self.session)
        side.onward = self.client.transport.write
        self.carry(self.session.connecting(monotonic_ns()))
        side.direct = "client" not in self.lines
        stalled = self.client.state == DEAF  # a rule has silenced the connection
        if stalled:
            self.client.begin()
        if stalled or self.client.gone or self.client.transport.is_closing():
            return
        try:
            transport = await self.host.connect(self, lambda: cast(asyncio.Protocol, side))
        except OSError as error:
            if not self.client.gone:
                self.host.say(self, "broker_unreachable", "", str(error), None)
            self.finish("broker unreachable", reset=True)
            return
        if side.gone or self.client.gone:
            transport.abort()
            return
        self.broker = side
        side.direct = "client" not in self.lines
        self.listen_in(self.host.tap(self))
        self.client.onward = side.transport.write
        self.client.begin()

    def listen_in(self, tap: Tap | None) -> None:
        """From now on give the bytes of both ends to this tap; None: to no tap."""
        for side in filter(None, (self.client, self.broker)):
            side.tap = tap
        self.tap = tap

    def carry(self, effects: list[Effect]) -> None:
        """Carry out the effects of the session."""
        carry_out(effects, self)

    def exchange(self, fields: dict[str, Any], listeners: Listeners) -> None:
        self.host.exchange(self, fields, listeners)

    def event(self, kind: str, api: str, message: object, fields: Fields) -> None:
        self.host.say(self, kind, api, message, fields)

    def bind(self) -> None:
        assert self.broker is not None
        self.broker.pause("bind")
        self.host.keep(self.safely(self._bind))

    def close(self, kind: str, api: str, message: str, fields: Fields, answered: bool) -> None:
        self.host.say(self, kind, api, message, fields)
        self.drain(kind, PATIENCE_S) if answered and self.session.owing else self.finish(kind)

    def hold(self, to: To, until: int) -> None:
        self.lines.open(to)
        self.lines.put(to, Until(until))

    def shape(self, to: To, traits: Shape, draw: Draw) -> None:
        self.lines.open(to).mould(traits, draw)

    def pause(self, to: To, frame: Paused) -> None:
        self.lines.open(to)
        self.lines.put(to, frame.place)
        self.host.paused(self, to, frame)

    def keep(self, correlation_id: int) -> None:
        """Nothing to do: the tap was told before (`End.data_received`, `_resumed`)."""

    def cut(self, to: To, how: How) -> None:
        self.lines.put(to, how)

    def resolve(self, to: To, frame: Paused, decision: Decision) -> None:
        """Carry out the decision about a paused frame. Raises as Session.resolve does."""
        effects = self.session.resolve(frame, decision, monotonic_ns())
        self.lines.advance(to)
        self._resumed(effects)

    def send(self, to: To, data: Piece) -> None:
        """Write it, or put it into the line of its side."""
        if to in self.lines:
            self.lines.put(to, data)
        elif (side := self.side(to)) is not None and not side.gone and not side.eof_sent:
            side.transport.write(data)
            side.crowded()
            if self.tap is not None:
                self.tap.sent(to, data)

    def in_flight(self) -> int:
        """Requests whose answer has not come, or is held by a rule."""
        held = self.lines["client"].held() if "client" in self.lines else 0
        return 0 if self.broker is None else self.session.pending() + held

    def _ends(self) -> tuple[tuple[To, End | None], ...]:
        return ("client", self.client), ("broker", self.broker)

    def side(self, to: To) -> End | None:
        return self.client if to == "client" else self.broker

    def mute_channel(self, until: int) -> None:
        """Read nothing from the client before `until`, not even its end: brokers do the same."""
        self.client.pause("quota")
        if (timer := self.timers.pop("quota", None)) is not None:
            timer.cancel()
        wait_s = max(0, until - monotonic_ns()) / 1e9
        self.timers["quota"] = asyncio.get_running_loop().call_later(wait_s, self.unmute)

    def read_client(self, on: bool) -> None:
        (self.client.resume if on else self.client.pause)("pending")

    def turn(self, side: Side) -> None:
        """Stop reading from this side until the loop has served other connections."""
        end = self.client if side == "request" else self.broker
        assert end is not None
        end.pause("turn")
        self.later(self.unmute if side == "request" else partial(self._read_on, "turn"))

    def unmute(self) -> None:
        client = self.client
        if client.gone or self.draining is not None:
            return
        self._resumed(self.session.unmute(monotonic_ns()))
        if self.session.muted:
            return
        for why in ("quota", "turn"):
            client.resume(why)
        if client.ended:
            self.half_closed(client)

    def _resumed(self, effects: list[Effect]) -> None:
        """Carry out effects of bytes that had to wait; the tap got the bytes when they came."""
        if self.tap is not None:
            self.tap.keep(effects)
        self.carry(effects)

    def silence(self, close_after_ns: int) -> None:
        """Send nothing more to either side, and drop what comes; the end of either is still noticed."""
        for to, side in self._ends():
            self.lines.open(to).mute()
            if side is not None:
                side.become(DEAF)
        if close_after_ns:
            after = asyncio.get_running_loop().call_later
            self.timers["mute"] = after(close_after_ns / 1e9, self.finish, "cut by a rule")

    def cut_now(self, reset: bool) -> None:
        """End both sides because of a rule, without what waits in lines."""
        self.silence(0)
        self._cut(reset, WRITING_S)

    def _cut(self, reset: bool, patience_s: float) -> None:
        """Close both sides. A reset drops unsent bytes, so it waits for them, up to `patience_s`."""
        sides = [side for side in (self.client, self.broker) if side is not None and not side.gone]
        if reset and patience_s > 0 and any(sockets.unsent(side.transport) for side in sides):
            later = asyncio.get_running_loop().call_later
            self.timers["cut"] = later(LOOK_S, self._cut, reset, patience_s - LOOK_S)
        else:
            self.finish("cut by a rule", reset=reset, now=True)

    async def safely(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run it. An exception, which is a defect of klamm, ends this connection and no other."""
        try:
            await work()
        except Exception as error:
            self.failed(error)

    def failed(self, error: Exception) -> None:
        self.host.failed(self, error)
        self.finish("defect", reset=True)

    async def _bind(self) -> None:
        await self.host.bind()
        self._read_on("bind")

    def _read_on(self, why: str) -> None:
        """The responses that had to wait are read now."""
        broker = self.broker
        if broker is None or self.client.gone:
            return
        broker.resume(why)
        self._resumed(self.session.bound(monotonic_ns()))
        self.answered()
        if self.session.blocked:
            return
        if broker.gone:
            self.lost(broker, None)
        elif broker.ended:
            self.half_closed(broker)

    def half_closed(self, side: End) -> None:
        """One end has sent its last byte: tell the other end, behind all bytes that came before."""
        ours = side is self.client
        other: End | None = self.broker if ours else self.client
        left = ours and self.draining is not None and self.draining.lingers
        if left or self.lines.stuck():
            self.finish(side.closed, now=True)
            return
        if other is None or (self.session.muted if ours else self.session.blocked):
            return  # begin(), unmute() and _read_on() come back to it
        if not self.finished:
            how = "" if self.reason else "closed"
            self.carry(self.session.client_closed() if ours else self.session.broker_closed(how))
        self.reason = self.reason or side.closed
        if other.gone or other.transport.is_closing():
            return
        if other.ended or not (ours or other.transport.can_write_eof()):
            self.finish(self.reason)  # TLS has no half-close
        elif other.transport.can_write_eof():
            self.lines.put("broker" if ours else "client", "eof")
        elif self.broker is not None:  # a client still gets the answers it waits for
            if self.broker.state == OPEN:
                self.broker.become(LEAVING)
            self.broker.wait()
            self.answered()

    def drain(self, reason: str, within_s: float) -> None:
        """Read no more requests, and end the link once all that the broker got are answered."""
        if self.broker is None:
            self.finish(reason)
        elif not isinstance(self.draining, Draining):
            self.draining = Draining(self, self.broker, reason, within_s)

    def answered(self) -> None:
        """If the broker cannot be told that the client has ended, end the link once it has answered all."""
        broker, session = self.broker, self.session
        if self.draining is not None:
            self.draining.look()
        elif self.client.ended and broker is not None and not broker.eof_sent:
            cut_short = session.requests.left > 0  # the last request will never be answered
            if session.pending() <= cut_short and not session.responses.left:
                self.finish(CLOSED_BY_CLIENT)

    def lost(self, side: End, exc: Exception | None) -> None:
        if exc is None or side.ended:
            leaving = self.draining is not None and self.draining.lingers
            if side is self.broker and (self.session.blocked or leaving) and not self.client.gone:
                return  # _read_on(), or the end of the client, comes back to it
            self.finish(side.closed)
        else:
            if side is self.broker and not self.finished:
                if isinstance(exc, ssl.SSLError):
                    self.host.say(self, "tls_failed", "", sockets.why_tls_ended(exc), None)
                self.carry(self.session.broker_closed("" if self.reason else "reset"))
            self.finish(sockets.why_lost(exc, side is self.client), reset=True)
        if self.client.gone and (self.broker is None or self.broker.gone):
            for timer in self.timers.values():
                timer.cancel()
            self.lines.free()
            reason = self.reason or "closed"
            self.host.closed(self, reason)
            if self.broker is not None:
                self.carry(self.session.over(reason, monotonic_ns()))
            if self.tap is not None:
                self.tap.closed(reason)
            for each in filter(None, (self.client, self.broker)):
                each.free()

    def finish(self, reason: str, reset: bool = False, now: bool = False) -> None:
        """End both sides. Written bytes still go out, but for a reset; bytes in a line too, unless `now`."""
        self.reason, self.finished = self.reason or reason, True
        for to, side in self._ends():
            if side is None or side.gone:
                continue
            line = self.lines.get(to)
            if line is not None and not (reset or now or line.stuck()):
                self.lines.put(to, "close")
            elif reset:
                sockets.reset(side.transport)
            else:
                side.close()
