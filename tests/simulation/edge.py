"""The simulated edge of one connection: it carries out the effects of a session, without sockets.

It does what klamm's own link does (proxy/edge/link.py) with a virtual clock, and with the same lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from klamm.decoders.schema import Side
from klamm.proxy.session.effects import Effect, Piece, To, carry_out
from klamm.proxy.session.line import Draw, Item, Line, Until
from klamm.proxy.session.observing.listeners import Listeners
from klamm.proxy.session.paused import Decision, Paused
from klamm.proxy.session.session import Session
from klamm.rules.orders import How, Shape
from tests.simulation.capture import Capture
from tests.simulation.clock import Clock

TURN_NS = 50_000  # others have their turn so long
BIND_NS = 3_000_000  # a port is bound after so long
PATIENCE_NS = 60_000_000_000  # for answers that are due before a close, and for a side that moves no bytes


class World(Protocol):
    """The parts of the world that an edge uses."""

    clock: Clock

    def bind_ports(self) -> None: ...
    def told(self, text: str, *fields: object) -> None: ...
    def heard(self, fields: dict[str, Any], listeners: Listeners) -> None: ...


class Edge:
    """`sent(to, data)` gets bytes for a side, `end(to)` the end of the other side, `close(to, reset)` closes
    a side, `told(fields)` gets each exchange that klamm tells.
    """

    def __init__(
        self,
        world: World,
        session: Session,
        sent: Callable[[To, bytes], None],
        end: Callable[[To], None],
        close: Callable[[To, bool], None],
        told: Callable[[dict[str, Any]], None],
        capture: Capture | None = None,
    ) -> None:
        self.world, self.session, self.capture = world, session, capture
        self.sent, self.end, self.close_side, self.told = sent, end, close, told
        self.lines: dict[To, Line] = {}
        self.unread: dict[Side, set[str]] = {"request": set(), "response": set()}  # why a side is not read
        self.closed: set[To] = set()
        self.told_end: set[To] = set()  # sides that know the end of the other side
        self.ended: set[Side] = set()  # sides that have sent their last byte
        self.deaf = False
        self.draining = False
        self.reason: str | None = None  # why the connection ends
        self.problem = ""  # klamm's own word for it
        self.paused: list[tuple[To, Paused]] = []
        self.timed: dict[To, int] = {}  # when a line goes on
        self.moves: dict[To, int] = {"client": 0, "broker": 0}  # reads from and writes to each side

    @property
    def now(self) -> int:
        return self.world.clock.now

    def open(self) -> None:
        self.carry(self.session.connecting(self.now))

    def is_read(self, side: Side) -> bool:
        return not self.unread[side] and ("client" if side == "request" else "broker") not in self.closed

    def came(self, side: Side, data: bytes) -> None:
        """Bytes of a read from this side."""
        self.moves["client" if side == "request" else "broker"] += 1
        if self.deaf:
            return
        take = self.session.from_client if side == "request" else self.session.from_broker
        to: To = "broker" if side == "request" else "client"
        effects = take(data, self.now)
        direct = effects is data and to not in self.lines and to not in self.closed | self.told_end
        if self.capture is not None:
            self.capture.came(side, data, self.now, direct)
        if direct:
            self.sent(to, data)
        elif effects is data:
            self.send(to, data)
        else:
            assert not isinstance(effects, bytes)
            self.carry(effects)
        self.look()

    def carry(self, effects: list[Effect]) -> None:
        carry_out(effects, self)

    # effects

    def send(self, to: To, data: Piece) -> None:
        if to in self.lines:
            self.put(to, data)
        elif to not in self.closed and to not in self.told_end:
            self._write(to, bytes(data))

    def bind(self) -> None:
        self.unread["response"].add("bind")
        self.world.clock.later(BIND_NS, self._bound)

    def exchange(self, fields: dict[str, Any], listeners: Listeners) -> None:
        self.told(fields)
        self.world.heard(fields, listeners)

    def event(self, kind: str, api: str, message: object, fields: dict[str, Any] | None) -> None:
        self.world.told(kind, api, message, fields)

    def close(self, kind: str, api: str, message: str, fields: dict[str, Any] | None, answered: bool) -> None:
        self.world.told(kind, api, message, fields)
        self.problem = self.problem or kind
        if answered and self.session.owing:
            self.drain(kind)
        else:
            self.finish(kind)

    def hold(self, to: To, until: int) -> None:
        self._line(to)
        self.put(to, Until(until))

    def shape(self, to: To, traits: Shape, draw: Draw) -> None:
        self._line(to).mould(traits, draw)

    def mute_channel(self, until: int) -> None:
        self.unread["request"].add("quota")
        self.world.clock.later(until - self.now, self.unmute)

    def read_client(self, on: bool) -> None:
        (self.unread["request"].discard if on else self.unread["request"].add)("pending")

    def turn(self, side: Side) -> None:
        self.unread[side].add("turn")
        self.world.clock.later(TURN_NS, self.unmute if side == "request" else self._read_on)

    def pause(self, to: To, frame: Paused) -> None:
        self._line(to)
        self.put(to, frame.place)
        self.paused.append((to, frame))

    def keep(self, correlation_id: int) -> None:
        """No capture runs."""

    def silence(self, close_after_ns: int) -> None:
        for to in ("client", "broker"):
            self._line(to).mute()
        self.deaf = True
        if close_after_ns:
            self.world.clock.later(close_after_ns, lambda: self.finish("cut by a rule"))

    def cut(self, to: To, how: How) -> None:
        self.put(to, how)

    # what happens later

    def resolve(self, to: To, frame: Paused, decision: Decision) -> None:
        """Raises as Session.resolve does."""
        effects = self.session.resolve(frame, decision, self.now)
        self.advance(to)
        self.carry(effects)
        self.look()

    def unmute(self) -> None:
        if "client" in self.closed or self.draining:
            return
        self.carry(self.session.unmute(self.now))
        if self.session.muted:
            return
        self.unread["request"] -= {"quota", "turn"}
        if "request" in self.ended:
            self.half_closed("request")

    def _bound(self) -> None:
        self.world.bind_ports()
        self._read_on()

    def _read_on(self) -> None:
        if "client" in self.closed:
            return
        self.unread["response"] -= {"bind", "turn"}
        self.carry(self.session.bound(self.now))
        self.look()
        if not self.session.blocked and "response" in self.ended:
            self.half_closed("response")

    # lines

    def _line(self, to: To) -> Line:
        return self.lines.setdefault(to, Line())

    def put(self, to: To, item: Item) -> None:
        if to not in self.lines:
            self._out(to, item)
        else:
            self.lines[to].put(item, self.now)
            self.advance(to)

    def advance(self, to: To) -> None:
        line = self.lines.get(to)
        if line is None or to in self.closed:
            return
        out, wake = line.take(self.now)
        for item in out:
            if to not in self.closed:
                self._out(to, item)
        if wake is not None and self.timed.get(to) != wake:
            self.timed[to] = wake
            self.world.clock.later(wake - self.now, lambda: self.advance(to))
        if line.idle():
            self.lines.pop(to, None)

    def _out(self, to: To, item: Any) -> None:
        if item in ("fin", "rst"):
            self.silence(0)
            self.finish("cut by a rule", reset=item == "rst", now=True)
        elif item == "close":
            self.shut(to, False)
        elif item == "eof":
            self.told_end.add(to)
            self.end(to)
            self.wait(to)
        elif to not in self.told_end:
            self._write(to, bytes(item))

    def wait(self, to: To) -> None:
        """Wait for the end of a side that knows the end of the other, while it moves bytes."""
        before = self.moves[to]

        def overdue() -> None:
            if to not in self.closed:
                self.finish("timed out", reset=True) if self.moves[to] == before else self.wait(to)

        self.world.clock.later(PATIENCE_NS, overdue)

    def _write(self, to: To, data: bytes) -> None:
        self.moves[to] += 1
        if self.capture is not None:
            self.capture.sent(to, data, self.now)
        self.sent(to, data)

    # ends

    def half_closed(self, side: Side) -> None:
        """A side has sent its last byte."""
        self.ended.add(side)
        if any(line.stuck() for line in self.lines.values()):
            self.finish(f"closed by {side}", now=True)
            return
        if self.session.muted if side == "request" else self.session.blocked:
            return
        ours = side == "request"
        to: To = "broker" if ours else "client"
        how = "" if self.reason else "closed"
        self.carry(self.session.client_closed() if ours else self.session.broker_closed(how))
        self.reason = self.reason or f"closed by {side}"
        if to in self.closed:
            return
        if ("response" if ours else "request") in self.ended:
            self.finish(self.reason)
        else:
            self.put(to, "eof")

    def reset(self, side: Side) -> None:
        """A side has reset its connection."""
        self.closed.add("client" if side == "request" else "broker")
        if side == "response":
            self.carry(self.session.broker_closed("" if self.reason else "reset"))
        self.finish(f"reset by {side}", reset=True)
        self._over()

    def drain(self, reason: str) -> None:
        """Read no more requests, and end once all that the broker got are answered."""
        if self.draining:
            return
        self.draining, self.reason = True, self.reason or reason
        self.session.drain()
        self.world.clock.later(PATIENCE_NS, lambda: self.finish("drain timed out", now=True))
        self.look()

    def look(self) -> None:
        """End a connection that drains once nothing is due."""
        if not self.draining or self.session.requests.left:
            return
        self.unread["request"].add("drain")
        if not self.session.responses.left and not self.session.pending():
            self.finish(self.reason or "drained")

    def finish(self, reason: str, reset: bool = False, now: bool = False) -> None:
        self.reason = self.reason or reason
        for to in ("client", "broker"):
            self._finish(to, reset, now)

    def _finish(self, to: To, reset: bool, now: bool) -> None:
        if to in self.closed:
            return
        line = self.lines.get(to)
        if line is not None and not (reset or now or line.stuck()):
            self.put(to, "close")
        else:
            self.shut(to, reset)

    def shut(self, to: To, reset: bool) -> None:
        if to in self.closed:
            return
        self.closed.add(to)
        self.close_side(to, reset)
        self._over()

    def _over(self) -> None:
        if len(self.closed) == 2:
            self.lines.clear()
            carry_out(self.session.over(self.reason or "closed", self.now), self)
            if self.capture is not None:
                self.capture.end(self.now, self.reason or "")
