"""Turns the orders of rules into pieces and effects, for the frames of one connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from klamm.decoders import API, DecodeError, decode, encode
from klamm.decoders.compile import UNREADABLE, skip_tags
from klamm.decoders.framing import SIZE
from klamm.proxy.session import effects
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect, Piece, To
from klamm.proxy.session.line import PausedPlace
from klamm.proxy.session.memory import NO_PATTERN, ApiMemory
from klamm.proxy.session.paused import Paused
from klamm.proxy.session.pending import PendingRequests
from klamm.rules.engine import Engine, Gate, Look
from klamm.rules.errors.answers import error_answer
from klamm.rules.frame import Frame, Peer
from klamm.rules.orders import (
    FOREVER,
    Answer,
    Cut,
    Delay,
    Drop,
    Edit,
    Keep,
    Log,
    MuteChannel,
    OnAnswer,
    Order,
    Pause,
    Raw,
    Shape,
    Silence,
    Twice,
)
from klamm.rules.plan import PRODUCE
from klamm.rules.state import Tally

if TYPE_CHECKING:
    from klamm.decoders.schema import Side

TO: dict[Side, To] = {"request": "broker", "response": "client"}


class AnswerOrders(NamedTuple):
    """Decisions about an answer, made when its request came."""

    request: Frame
    acts: tuple[Callable[[Frame], Iterable[Order]], ...] = ()
    swallow: bool = False


class Concern(NamedTuple):
    """The rules for one API version and side on a connection. `learns`: its groups are noted too."""

    tallies: tuple[Tally, ...]
    learns: bool
    by_header: bool


class RuleOrders:
    """`heard`: the errors in an answer that rules have changed, for the log. `look`: what was decided from
    the header of a frame that is not whole yet.
    """

    def __init__(self, connection: Connection, engine: Engine, peer: Peer) -> None:
        self.connection, self.engine, self.peer = connection, engine, peer
        self.gate = Gate(engine, peer, connection.context.topology.topic_names.get)
        self.heard: list[int] | None = None
        self.look: dict[Side, Look | None] = {"request": None, "response": None}
        self.plans_revision = connection.context.planner.revision

    def connecting(self, now: int) -> list[Effect]:
        """Effects of rules on a connection that opens."""
        frame = Frame(API["ApiVersions"], 0, "request", b"", None, self.peer, now)
        pieces: list[Piece | Effect] = []
        for order in self.gate.connecting(frame, now):
            at_once = self.gate.answered((order.act,), frame) if isinstance(order, OnAnswer) else (order,)
            if any(self._carry(each, pieces, "response", b"", frame) for each in at_once):
                break
        others, self.connection.effects = self.connection.effects, []
        return [*(piece for piece in pieces if not isinstance(piece, bytes | memoryview)), *others]

    def rule_anew(self, known: dict[int, ApiMemory]) -> None:
        """The rules have changed: look up which concern each memory, and let the next frames be read."""
        planner = self.connection.context.planner
        if self.plans_revision != planner.revision:
            self.plans_revision = planner.revision
            known.clear()
        for memory in known.values():
            self.rule(memory)
            memory.forget()
            memory.answer = NO_PATTERN

    def rule(self, memory: ApiMemory) -> None:
        """Look up which rules concern the memory's frames."""
        memory.concerns = (self._concerned(memory, "request"), self._concerned(memory, "response"))

    def _concerned(self, memory: ApiMemory, side: Side) -> Concern | None:
        """The rules for such frames; None where none reads or acts on them."""
        plan = memory.plan
        if plan.key not in API:
            return None
        api = API[plan.key]
        tallies = self.engine.concerned(api, plan.version, side, self.peer, memory.counters.client_id)
        learns = plan.unknown is None and self.engine.learns_from(api, side)
        by_header = not learns and not any(tally.reads for tally in tallies)
        return Concern(tallies, learns, by_header) if tallies or learns else None

    def passes(self, memory: ApiMemory, count: int, now: int) -> int:
        """How many leading requests of `count` the rules let pass. The look at the next one is kept."""
        tallies, client_id = memory.concerns[0].tallies, memory.counters.client_id
        for number in range(self.gate.quiet(tallies, count, now), count):
            look = self.gate.look(tallies, client_id, now)
            if look:
                self.look["request"] = look
                return number
        return count

    def looks(self, memory: ApiMemory, side: Side, concern: Concern | None, now: int) -> bool:
        """Must the frame be held until it is whole? Decided once for each frame, until it has passed."""
        if concern is None:
            return False
        look = self.look[side]
        if look is None:
            look = self.look[side] = self.gate.look(concern.tallies, memory.counters.client_id, now)
        return bool(look) or concern.learns

    def give_up(self, side: Side) -> None:
        """No rule acts on this frame: it is too large to be held."""
        self.look[side] = ()

    def passed(self, side: Side) -> None:
        """This frame goes on; look at the next one anew."""
        self.look[side] = None

    def request(
        self, memory: ApiMemory, head: bytes, body: bytes, correlation: int, now: int
    ) -> tuple[list[Piece | Effect], list[PendingRequests]] | None:
        """What goes to the broker instead of a request, and what is in flight then; None: the request itself.
        `head`: from the size field to the body.
        """
        look, self.look["request"] = self.look["request"], None
        frame, answered = self._frame(memory, "request", len(head), body, now), memory.summary.answered
        orders = self.gate.orders(frame, look or (), now)
        if not orders:
            return None
        pieces: list[Piece | Effect] = []
        self._mute_channel(orders, now)
        acts: list[Callable[[Frame], Iterable[Order]]] = []
        runs: list[PendingRequests] = []
        times = 1
        for order in orders:
            match order:
                case OnAnswer(act):
                    acts.append(act)
                case Twice():
                    times = 2
                case Keep():
                    pieces.append(effects.Keep(correlation))
                case Answer(values):
                    if values is not None and answered:
                        runs.append(self.made(memory, values, correlation, acts, frame, now))
                    return pieces, runs
                case Drop():
                    if answered:
                        runs.append(
                            PendingRequests(
                                None,
                                memory.summary,
                                now,
                                [correlation],
                                0,
                                (effects.Hold("client", FOREVER),),
                            )
                        )
                    return pieces, runs
                case _:
                    done = self._carry(order, pieces, "request", head, frame)
                    if done:
                        return pieces, runs
        whole = sized(head, frame.body)
        heard = _is_heard(orders, frame, answered)
        pause = _pause(orders)
        held = None
        if pause is None:
            pieces += [whole] * times
        else:
            gap = PausedPlace(len(whole) * times)
            held = Paused(
                pause, memory, frame, head, correlation, gap, times, answered and heard, acts=tuple(acts)
            )
            pieces.append(effects.Pause("broker", held))
        if answered and not heard:
            values = error_answer(
                frame.api, frame.version, decode(body, PRODUCE, frame.version, "request"), 0
            )
            assert values is not None
            return pieces, [self.made(memory, values, correlation, acts, frame, now)]
        if heard:
            sent = PendingRequests(memory, memory.summary, now, [correlation], len(whole) - 4)
            unheard = sent._replace(answer_orders=AnswerOrders(frame, (), True))
            first = sent._replace(answer_orders=AnswerOrders(frame, tuple(acts))) if acts or held else sent
            runs += [first if answered else unheard] + [unheard] * (times - 1)
        if held is not None:
            held.pending = runs
        return pieces, runs

    def response(
        self, memory: ApiMemory, run: PendingRequests, data: bytes, now: int
    ) -> list[Piece | Effect] | None:
        """The pieces that go to the client instead of a response with its size field; None: itself."""
        look, self.look["response"] = self.look["response"], None
        answer_orders: AnswerOrders | None = run.answer_orders
        if answer_orders is not None and answer_orders.swallow:
            return []
        start = _body(data, memory.plan.response_tags)
        frame = self._frame(
            memory, "response", start, data[start:], now, answer_orders.request if answer_orders else None
        )
        orders: list[Order] = []
        whole = frame.body
        if answer_orders is not None:
            orders += self.gate.answered(answer_orders.acts, frame)
        if look:
            orders += self.gate.orders(frame, look, now)
        if not orders:
            return None
        if any(isinstance(order, Edit) for order in orders):
            before = self._frame(memory, "response", start, whole, now).values
            self.heard = self.connection.edited(memory, before, frame.values)
        self._mute_channel(orders, now)
        pieces: list[Piece | Effect] = []
        (correlation,) = SIZE.unpack_from(data, 4)
        for order in orders:
            if isinstance(order, Keep):
                pieces.append(effects.Keep(correlation))
            elif self._carry(order, pieces, "response", data[:start], frame):
                return pieces
        pause = _pause(orders)
        if pause is None:
            pieces.append(sized(data[:start], frame.body))
        else:
            gap = PausedPlace(start + len(frame.body))
            paused = Paused(pause, memory, frame, data[:start], correlation, gap)
            pieces.append(effects.Pause("client", paused))
        return pieces

    def _carry(
        self, order: Order, pieces: list[Piece | Effect], side: Side, head: bytes, frame: Frame
    ) -> bool:
        """Carry out an order that means the same on both sides. True if nothing comes after it."""
        match order:
            case Edit() | Raw() | Pause() | MuteChannel():
                return False  # the frame has it, or it comes when all else is done
            case Delay(ns):
                pieces.append(effects.Hold(TO[side], frame.arrived_ns + ns))
            case Cut(how, sent):
                whole = head and sized(head, frame.body)
                pieces += [whole[:sent], effects.Cut(TO[side], how)]
                return True
            case Drop():
                pieces.append(effects.Hold("client", FOREVER))
                return True
            case Silence(close_after_ns):
                pieces.append(effects.Silence(close_after_ns))
                return True
            case Shape():
                pieces.append(effects.Shape(TO[order.direction], order, self.gate.draws()))
            case Log(message, fields, each, rule):
                kind = "rule" if each else "rule_refused"
                said = {"rule": rule, **fields}
                self.connection.effects.append(effects.Event(kind, frame.api.name, message, said))
        return False

    def made(
        self,
        memory: ApiMemory,
        values: dict[str, Any],
        correlation: int,
        acts: list[Callable[[Frame], Iterable[Order]]],
        request: Frame,
        now: int,
    ) -> PendingRequests:
        """klamm's own answer, which waits for its turn. Actions on the answer are applied to it."""
        plan = memory.plan
        body = encode(values, plan.key, plan.version, "response")
        head = SIZE.pack(0) + SIZE.pack(correlation) + (b"\0" if plan.response_tags else b"")
        pieces: list[Piece | Effect] = []
        frame = self._frame(memory, "response", len(head), body, now, request)
        orders = self.gate.answered(acts, frame)
        self._mute_channel(orders, now)
        for order in orders:
            if self._carry(order, pieces, "response", head, frame):
                return PendingRequests(None, memory.summary, now, [correlation], 0, tuple(pieces))
        pieces.append(sized(head, frame.body))
        run = PendingRequests(None, memory.summary, now, [correlation], len(request.body), tuple(pieces))
        self.connection.own_answer(memory, run, frame.values, len(head) - 4 + len(frame.body))
        return run

    def _mute_channel(self, orders: list[Order], now: int) -> None:
        """Mute the channel for the longest time that the orders say."""
        ns = max((order.ns for order in orders if isinstance(order, MuteChannel)), default=0)
        if ns:
            connection = self.connection
            connection.muted_until = max(connection.muted_until, now + ns)
            connection.effects.append(effects.MuteChannel(connection.muted_until))

    def _frame(
        self,
        memory: ApiMemory,
        side: Side,
        header_bytes: int,
        body: bytes,
        now: int,
        request: Frame | None = None,
    ) -> Frame:
        plan = memory.plan
        frame = Frame(
            API[plan.key], plan.version, side, body, memory.counters.client_id, self.peer, now, request
        )
        frame.names, frame.header_bytes = self.gate.name_of, header_bytes
        return frame


def sized(head: bytes, body: bytes) -> bytes:
    """A frame of this header, which begins with a size field, and this body, with the right size."""
    return SIZE.pack(len(head) - 4 + len(body)) + head[4:] + body


def _pause(orders: list[Order]) -> Pause | None:
    """The first of them that lets the frame wait."""
    return next((order for order in orders if isinstance(order, Pause)), None)


def _body(data: bytes, tagged: bool) -> int:
    """Where a response's body begins; a header that does not decode is of its least size."""
    try:
        return skip_tags(data, 9, len(data), data[8]) if tagged else 8
    except UNREADABLE:
        return 8


def _is_heard(orders: list[Order], frame: Frame, answered: bool) -> bool:
    """Does the broker answer what it gets of a request that is `answered`? Rules can change the acks."""
    if frame.api.key != PRODUCE or not any(isinstance(order, Edit) for order in orders):
        return answered
    try:
        return bool(frame.values["acks"] != 0)
    except DecodeError:
        return answered
