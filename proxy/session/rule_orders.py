"""Turns the orders of rules into pieces and effects, for the frames of one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from klamm.decoders import API, encode
from klamm.decoders.framing import SIZE
from klamm.proxy.session import effects
from klamm.proxy.session.asked import Acts, AnswerOrders, Asked, Concern, acknowledgement, broker_answers
from klamm.proxy.session.connection import Connection
from klamm.proxy.session.effects import Effect, Piece, To
from klamm.proxy.session.framed import body_offset, sized
from klamm.proxy.session.line import PausedPlace
from klamm.proxy.session.memory import NO_PATTERN, ApiMemory
from klamm.proxy.session.observing.summaries import RequestSummary
from klamm.proxy.session.paused import Paused
from klamm.proxy.session.paused_answers import see
from klamm.proxy.session.pending import PendingRequests
from klamm.proxy.session.unanswered import tell_at_once
from klamm.rules.engine import Engine, Gate, Look
from klamm.rules.frame import Frame, Peer
from klamm.rules.orders import (
    FOREVER,
    Afterwards,
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
    edited_by,
    pause_of,
)
from klamm.rules.plan import MOST_RULED, Plan

if TYPE_CHECKING:
    from klamm.decoders.schema import Side

ACTING = 200  # steps that a rule takes for a frame, beside its expression
TO: dict[Side, To] = {"request": "broker", "response": "client"}


class RuleOrders:
    """`changed_errors`: the error codes of an answer that rules have changed, for the log. `look`: the rules
    that may act on the current frame, found by its header; None before they are looked up.
    `shown`: the request that was ruled last, as it came, for listeners that take bodies; `answer`: the
    response.
    """

    def __init__(self, connection: Connection, engine: Engine, peer: Peer) -> None:
        self.connection, self.engine, self.peer = connection, engine, peer
        self.gate = Gate(engine, peer, connection.context.topology.topic_names.get)
        self.changed_errors: list[int] | None = None
        self.shown: Frame | None = None
        self.answer: Frame | None = None
        self.look: dict[Side, Look | None] = {"request": None, "response": None}
        self.plans_revision = connection.context.planner.revision

    def connecting(self, now: int) -> list[Effect]:
        """The effects of rules on a connection that opens."""
        frame = Frame(API["ApiVersions"], 0, "request", b"", None, self.peer, now)
        pieces: list[Piece | Effect] = []
        for order in self.gate.connecting(frame, now):
            at_once = self.gate.answered((order,), frame) if isinstance(order, OnAnswer) else (order,)
            if any(self._carry(each, pieces, "response", b"", frame) for each in at_once):
                break
        others, self.connection.effects = self.connection.effects, []
        return [*(piece for piece in pieces if not isinstance(piece, bytes | memoryview)), *others]

    def rule_anew(self, known: dict[int, ApiMemory]) -> None:
        """The rules have changed: look up those that concern each memory, and have the next frames read."""
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
        counted_rules = self.engine.concerned(api, plan.version, side, self.peer, memory.client_id)
        learns = plan.unknown is None and self.engine.learns_from(api, side)
        by_header = not learns and not any(counted.reads for counted in counted_rules)
        unreadable = None
        if self.connection.context.unruled == "close":
            unreadable = self.engine.index.unreadable(api, plan.version, side, self.peer, memory.client_id)
        some = counted_rules or learns or unreadable is not None
        return Concern(counted_rules, learns, by_header, unreadable) if some else None

    def bars(self, plan: Plan, why: object) -> bool:
        """Close the connection for a request whose header cannot be read, if it may be one for rules."""
        has_rules = self.engine.index.may_change(plan.key)
        return has_rules and self.connection.unjudged(plan, "request", f"its header cannot be read: {why}")

    def passes(self, memory: ApiMemory, count: int, now: int) -> int:
        """How many of `count` requests, from the first on, the rules let pass. `look` keeps the rules for the
        next one.
        """
        counted_rules, client_id = memory.concerns[0].counted_rules, memory.client_id
        for number in range(self.gate.quiet(counted_rules, count, now), count):
            look = self.gate.look(counted_rules, client_id, now)
            if look:
                self.look["request"] = look
                return number
        return count

    def hold(self, memory: ApiMemory, side: Side, size: int, awaited: bool, now: int) -> bool:
        """Must a frame of `size` bytes be held until it is whole? `awaited`: rules that met its request wait
        for it. Rules are looked up once for each frame; none acts on a frame that is too large.
        """
        concern: Concern | None = memory.concerns[side == "response"]
        if concern is not None and concern.unreadable is not None:
            why = f"{concern.unreadable.rule.name}: klamm does not know its version {memory.plan.version}"
            self.connection.unjudged(memory.plan, side, why)
            return False
        look, first = self.look[side], self.look[side] is None
        if concern is not None and look is None:
            look = self.gate.look(concern.counted_rules, memory.client_id, now)
        self.look[side] = look or ()
        if not (look or awaited or (concern is not None and concern.learns)):
            return False
        if size <= self.connection.context.held_limit:
            return True
        if first:
            self.give_up(memory, side, size)
        self.look[side] = ()
        return False

    def give_up(self, memory: ApiMemory, side: Side, size: int) -> None:
        """Let no rule act on this frame, because it cannot be held."""
        self.look[side] = ()
        self.connection.unruled(memory.plan, side, size)

    def passed(self, side: Side) -> None:
        """This frame goes on; look up the rules again for the next one."""
        self.look[side] = None

    def request(
        self, memory: ApiMemory, whole: bytes, start: int, correlation: int, now: int
    ) -> tuple[list[Piece | Effect], list[PendingRequests]] | None:
        """The pieces that go to the broker instead of a request, and its pending requests; `whole` itself is
        one of them where it goes on unchanged. None: no rule acts on it. Its body begins at `start`.
        """
        look, self.look["request"] = self.look["request"], None
        head, body = whole[:start], whole[start:]
        if memory.plan.too_many(body):
            self.connection.work += len(body)
            self.connection.unruled(memory.plan, "request", len(whole), MOST_RULED)
            return None
        frame = self.frame(memory, "request", start, body, now)
        self.gate.unjudged = ""
        orders = self.gate.orders(frame, look or (), now)
        if self.gate.unjudged and self.connection.unjudged(memory.plan, "request", self.gate.unjudged):
            return None
        self.connection.work += frame.work + len(body) + ACTING * len(look or ())
        if not orders:
            return None
        self.shown = frame.copy(body) if memory.summary.bodies else None
        self._mute_channel(orders, now)
        asked = Asked(memory, whole, head, body, correlation, now)
        pieces, runs, heard = self._carry_out(orders, frame, asked)
        if not heard:
            summary = memory.summary.treated(frame.treatment)
            run = PendingRequests(memory, summary, now, correlation, len(whole) - 4, frame=self.shown)
            tell_at_once(self.connection, run, orders)
        return pieces, runs

    def _carry_out(
        self, orders: list[Order], frame: Frame, asked: Asked
    ) -> tuple[list[Piece | Effect], list[PendingRequests], bool]:
        """As `request`, and whether the client gets an answer of the broker's or of klamm's."""
        memory, correlation, now = asked.memory, asked.correlation_id, asked.now
        answered, pieces = memory.summary.answered, list[Piece | Effect]()
        acts: list[OnAnswer] = []
        runs: list[PendingRequests] = []
        for order in orders:
            match order:
                case OnAnswer():
                    acts.append(order)
                case Keep():
                    pieces.append(effects.Keep(correlation))
                case Answer(values):
                    frame.treatment.withheld = True
                    if values is not None and answered:
                        summary = memory.summary
                        runs.append(self.made(memory, summary, values, correlation, tuple(acts), frame, now))
                    return pieces, runs, bool(runs)
                case Drop():
                    frame.treatment.withheld = True
                    if answered:
                        never: tuple[Piece | Effect, ...] = (effects.Hold("client", FOREVER),)
                        runs.append(PendingRequests(None, memory.summary, now, correlation, 0, never))
                    return pieces, runs, False
                case _:
                    done = self._carry(order, pieces, "request", asked.head, frame)
                    if done:
                        return pieces, runs, False
        return pieces, self._send(orders, frame, asked, tuple(acts), pieces), answered

    def _send(
        self, orders: list[Order], frame: Frame, asked: Asked, acts: Acts, pieces: list[Piece | Effect]
    ) -> list[PendingRequests]:
        """Send a request as the orders have changed it, once or twice, now or after a person's decision: adds
        to `pieces`, and gives its pending requests.
        """
        memory, whole, head, body, correlation, now = asked
        times = 1 + any(isinstance(order, Twice) for order in orders)
        needed = memory.concerns[1] is not None or any(act.needs_request for act in acts)
        answered, frame.treatment.changed = memory.summary.answered, frame.body != body
        if frame.treatment.changed:
            whole = sized(head, frame.body)
        awaits, pause, held = broker_answers(orders, frame, answered), pause_of(orders), None
        if pause is None:
            pieces += [whole] * times
        else:
            gap = PausedPlace(len(whole) * times)
            held = Paused(pause, memory, frame, head, correlation, gap, times, answered and awaits, acts=acts)
            pieces.append(effects.Pause("broker", held))
        if answered and not awaits:
            values = acknowledgement(frame.version, body)
            return [self.made(memory, memory.summary, values, correlation, acts, frame, now)]
        if not awaits:
            return []
        first = AnswerOrders(frame if needed or held else None, acts) if acts or held else None
        second = AnswerOrders(None, (), True)
        decided = [first if answered else second] + [second] * (times - 1)
        size = len(whole) - 4
        summary = memory.summary.treated(frame.treatment)
        if not answered:
            summary.listeners = ()  # they are told at once
        runs = [
            PendingRequests(memory, summary, now, correlation, size, (), each, self.shown) for each in decided
        ]
        if held is not None:
            held.pending = runs
        return runs

    def response(
        self, memory: ApiMemory, run: PendingRequests, data: bytes, now: int, came: bytes | None = None
    ) -> list[Piece | Effect] | None:
        """The pieces that go to the client instead of a response; None: the response goes on itself. `came`:
        the response before its addresses were replaced.
        """
        look, self.look["response"], self.answer = self.look["response"], None, None
        answer_orders: AnswerOrders | None = run.answer_orders
        if answer_orders is not None and answer_orders.swallow:
            return []
        start = body_offset(data, memory.plan.response_tags)
        frame = self.frame(
            memory, "response", start, data[start:], now, answer_orders.request if answer_orders else None
        )
        frame.came = None if came is None else came[start:]
        self.answer = frame
        orders: list[Order] = []
        whole = frame.body
        self.gate.unjudged = ""
        if answer_orders is not None:
            orders += self.gate.answered(answer_orders.acts, frame)
        if look:
            orders += self.gate.orders(frame, look, now)
        if self.gate.unjudged and self.connection.unjudged(memory.plan, "response", self.gate.unjudged):
            return None
        self.connection.work += frame.work + len(whole) + ACTING * len(look or ())
        afterwards = [order for order in orders if isinstance(order, Afterwards)]
        if len(afterwards) == len(orders):
            see(self.connection, afterwards, frame)
            return None
        self.connection.treatment = frame.treatment
        frame.treatment.changed = frame.body != whole
        if frame.treatment.changed and (edited := edited_by(orders)) is not None:
            before = self.frame(memory, "response", start, whole, now).values
            self.changed_errors = self.connection.edited(memory, before, edited)
        self._mute_channel(orders, now)
        pieces: list[Piece | Effect] = []
        (correlation,), pause = SIZE.unpack_from(data, 4), pause_of(orders)
        for order in orders:
            if isinstance(order, Keep):
                pieces.append(effects.Keep(correlation))
            elif self._carry(order, pieces, "response", data[:start], frame):
                see(self.connection, afterwards, frame)
                return pieces
        if pause is None:
            see(self.connection, afterwards, frame)
            pieces.append(sized(data[:start], frame.body))
        else:
            gap = PausedPlace(start + len(frame.body))
            paused = Paused(pause, memory, frame, data[:start], correlation, gap, afterwards=afterwards)
            pieces.append(effects.Pause("client", paused))
            self.connection.undecided.append(paused)
        return pieces

    def _carry(
        self, order: Order, pieces: list[Piece | Effect], side: Side, head: bytes, frame: Frame
    ) -> bool:
        """Carry out an order that means the same on both sides. True if no order after it counts."""
        match order:
            case Edit() | Raw() | Pause() | MuteChannel() | Twice() | Afterwards():
                return False  # done already in the frame, or by the caller
            case Delay(ns):
                pieces.append(effects.Hold(TO[side], frame.arrived_ns + ns))
                frame.treatment.delay_ns = max(frame.treatment.delay_ns, ns)
            case Cut(how, sent):
                whole = head and sized(head, frame.body)
                pieces += [whole[:sent], effects.Cut(TO[side], how)]
                frame.treatment.withheld = sent == 0
                return True
            case Drop():
                frame.treatment.withheld = True
                pieces.append(effects.Hold("client", FOREVER))
                return True
            case Silence(close_after_ns):
                frame.treatment.withheld = True
                pieces.append(effects.Silence(close_after_ns))
                return True
            case Shape():
                pieces.append(effects.Shape(TO[order.direction], order, self.gate.draws()))
            case Log(message, fields, each, rule):
                kind = "rule" if each else "rule_refused"
                fields = {"rule": rule, **fields}
                self.connection.effects.append(effects.Event(kind, frame.api.name, message, fields))
        return False

    def made(
        self,
        memory: ApiMemory,
        summary: RequestSummary,
        values: dict[str, Any],
        correlation: int,
        acts: Acts,
        request: Frame,
        now: int,
    ) -> PendingRequests:
        """klamm's own answer to a request with this summary, as pending requests that wait for their turn;
        `acts` are applied to it.
        """
        plan = memory.plan
        body = encode(values, plan.key, plan.version, "response")
        head = SIZE.pack(0) + SIZE.pack(correlation) + (b"\0" if plan.response_tags else b"")
        pieces: list[Piece | Effect] = []
        frame = self.frame(memory, "response", len(head), body, now, request)
        orders = self.gate.answered(acts, frame)
        self._mute_channel(orders, now)
        see(self.connection, orders, frame)
        for order in orders:
            if self._carry(order, pieces, "response", head, frame):
                return PendingRequests(None, summary, now, correlation, 0, tuple(pieces))
        pieces.append(sized(head, frame.body))
        summary, self.connection.treatment = summary.treated(request.treatment), frame.treatment
        length, shown = len(head) - 4 + len(frame.body), self.shown
        size = request.header_bytes - 4 + len(request.body)
        run = PendingRequests(None, summary, now, correlation, size, tuple(pieces), None, shown)
        self.connection.own_answer(memory, run, edited_by(orders) or values, length, frame)
        return run

    def _mute_channel(self, orders: list[Order], now: int) -> None:
        """Mute the channel for the longest time in the orders."""
        ns = max((order.ns for order in orders if isinstance(order, MuteChannel)), default=0)
        if ns:
            connection = self.connection
            connection.muted_until = max(connection.muted_until, now + ns)
            connection.effects.append(effects.MuteChannel(connection.muted_until))

    def frame(
        self,
        memory: ApiMemory,
        side: Side,
        header_bytes: int,
        body: bytes,
        now: int,
        request: Frame | None = None,
    ) -> Frame:
        plan = memory.plan
        frame = Frame(API.any(plan.key), plan.version, side, body, memory.client_id, self.peer, now, request)
        frame.names, frame.header_bytes = self.gate.name_of, header_bytes
        return frame
