"""Tries rules on captured traffic: which frames each would match, and what it would order. Nothing is sent.

The frames are those that came, in their times. What a client would have done after a rule has acted on it
is not known: it goes on as it was captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.frames import NAMING, Framing
from klamm.decoders import API, DecodeError, EncodeError, encode
from klamm.decoders.schema import Side
from klamm.rules.engine import SESSION_NOT_FOUND, Engine, Gate
from klamm.rules.frame import Frame
from klamm.rules.orders import ENDING, Answer, OnAnswer, Order
from klamm.rules.parts import parts
from klamm.rules.rule import Action, Draw, Rule
from klamm.rules.state import CountedRule

BEGIN_ANEW = Answer({"error_code": SESSION_NOT_FOUND})  # the engine's own, to requests of unknown sessions
NAMES_KEPT = 1000  # topics and groups that a rule could have matched, and did not

Client = tuple[str | None, str]  # client id, host
Acts = list[OnAnswer]


class Flow(NamedTuple):
    """The properties of a frame's header by which rules are selected."""

    side: Side
    api_key: int
    version: int
    client_id: str | None
    host: str
    principal: str | None
    broker: str
    cluster: str


@dataclass(slots=True)
class Outcome:
    """The result for one rule."""

    rule: Rule
    matches: int = 0
    hits: int = 0
    failures: int = 0
    first_ns: int = 0  # of the matches
    last_ns: int = 0
    clients: Counter[Client] = field(default_factory=Counter)  # matches
    topics: Counter[str] = field(default_factory=Counter)  # frames, while the rule matched none
    groups: Counter[str] = field(default_factory=Counter)
    asked: int = 0  # frames whose bodies it read meanwhile


Listener = Callable[[Outcome, Frame, Order], None]


@dataclass(frozen=True, slots=True)
class ReportingAction:
    """Wraps an action and reports its orders. `observes` as of the action."""

    action: Action
    tell: Callable[[Frame, Order], None]
    observes: bool
    name: ClassVar[str] = "reporting"
    sides: ClassVar[Sequence[str]] = ("request", "response", "connect")

    def act(self, frame: Frame, draw: Draw) -> Iterator[Order]:
        for order in self.action.act(frame, draw):
            if isinstance(order, OnAnswer):
                yield OnAnswer(self._later(order))
            else:
                self.tell(frame, order)
                yield order

    def _later(self, order: OnAnswer) -> Callable[[Frame], Iterable[Order]]:
        def act(frame: Frame) -> Iterator[Order]:
            for later in order.act(frame):
                self.tell(frame, later)
                yield later

        return act


@dataclass(slots=True, eq=False)
class _RuledConnection:
    """One connection: its gate, the rules for each of its flows, and its pending requests."""

    gate: Gate
    counted_rules: dict[tuple[int, int, Side, str | None], tuple[CountedRule, ...]] = field(
        default_factory=dict
    )
    waiting: dict[int, tuple[Frame, Acts]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)  # requests that the broker would not have seen


class Trial:
    """Rules applied to one capture. `listener` gets each order as it is given."""

    def __init__(self, rules: Sequence[Rule], seed: int, listener: Listener) -> None:
        self.outcomes = [Outcome(rule) for rule in rules]
        self.listener = listener
        self.engine = Engine(seed)
        self.framing = Framing()
        self.talks: dict[CapturedConnection, _RuledConnection] = {}
        self.flows: Counter[Flow] = Counter()
        self.sessions_unknown = 0  # Fetch requests of sessions whose beginning was not seen
        self.by_name = {outcome.rule.name: outcome for outcome in self.outcomes}
        self.begun = False

    def run(self, rows: Iterable[Captured]) -> None:
        """Takes all rows, in order."""
        for row in rows:
            if not self.begun:
                self.begun = True
                self.engine.load([self._reporting(outcome) for outcome in self.outcomes], row.time_ns)
            if row.connection is None:
                continue
            if row.kind == "closed":
                self.talks.pop(row.connection, None)
            elif row.kind == "opened":
                self._talk(row)
            elif row.kind == "frame" and row.side == "request" and row.fate != "made":
                self._request(row)
            elif row.kind == "frame" and row.side == "response":
                self._response(row)
        for outcome, counted in zip(self.outcomes, self.engine.counted_rules, strict=False):
            outcome.matches, outcome.hits, outcome.failures = counted.matches, counted.hits, counted.failures

    def _reporting(self, outcome: Outcome) -> Rule:
        def tell(frame: Frame, order: Order) -> None:
            self.listener(outcome, frame, order)

        do = tuple(
            ReportingAction(action, tell, getattr(action, "observes", False)) for action in outcome.rule.do
        )
        return replace(outcome.rule, do=do)

    def _talk(self, row: Captured) -> _RuledConnection:
        """The connection's, which opens now if nothing was seen of it yet."""
        of = row.connection
        assert of is not None
        talk = self.talks.get(of)
        if talk is None:
            gate = Gate(
                self.engine,
                self.engine.peer(of.cluster, of.broker, of.client, of.number, of.principal),
                self.framing.topics.get,
            )
            talk = self.talks[of] = _RuledConnection(gate)
            frame = Frame(API["ApiVersions"], 0, "request", b"", None, gate.peer, row.time_ns)
            rules = tuple(counted for counted in self.engine.counted_rules if counted.rule.event == "connect")
            self._watched(rules, frame, lambda: gate.connecting(frame, row.time_ns))
        return talk

    def _request(self, row: Captured) -> None:
        talk, frame = self._talk(row), self.framing.frame(row)
        if frame is None:
            return
        orders = self._orders(talk, frame)
        if orders == [BEGIN_ANEW]:
            self.sessions_unknown += 1
            orders = []
        acts = [order for order in orders if isinstance(order, OnAnswer)]
        if orders and isinstance(orders[-1], ENDING):
            talk.ended.add(row.exchange)
            if isinstance(orders[-1], Answer) and orders[-1].values is not None:
                self._made(talk, frame, orders[-1].values, acts)
        elif row.awaits:
            talk.waiting[row.exchange] = frame, acts

    def _response(self, row: Captured) -> None:
        talk = self._talk(row)
        request, acts = talk.waiting.pop(row.exchange, (None, []))
        if row.exchange in talk.ended:
            talk.ended.discard(row.exchange)
            return
        frame = self.framing.frame(row, request)
        if frame is None or row.fate == "made":
            return
        if frame.api.key in NAMING:
            self.framing.learn(frame)
        talk.gate.answered(acts, frame)
        self._orders(talk, frame)

    def _made(self, talk: _RuledConnection, request: Frame, values: dict[str, Any], acts: Acts) -> None:
        """klamm's own answer: actions that wait for the answer act on it."""
        try:
            body = encode(values, request.api.key, request.version, "response")
        except EncodeError:
            return
        of = request.client_id, talk.gate.peer, request.arrived_ns, request
        talk.gate.answered(acts, Frame(request.api, request.version, "response", body, *of))

    def _orders(self, talk: _RuledConnection, frame: Frame) -> list[Order]:
        """The orders of all rules for this frame."""
        peer, now = talk.gate.peer, frame.arrived_ns
        frame.peer = peer
        kind = frame.api.key, frame.version, frame.side, frame.client_id
        counted_rules = talk.counted_rules.get(kind)
        if counted_rules is None:
            counted_rules = self.engine.concerned(frame.api, frame.version, frame.side, peer, frame.client_id)
            talk.counted_rules[kind] = counted_rules
        of = frame.client_id, peer.client_host, peer.principal, peer.broker, peer.cluster
        self.flows[Flow(frame.side, frame.api.key, frame.version, *of)] += 1
        if not counted_rules and not self.engine.learns_from(frame.api, frame.side):
            return []

        def ask() -> list[Order]:
            return talk.gate.orders(frame, talk.gate.look(counted_rules, frame.client_id, now), now)

        return self._watched(counted_rules, frame, ask)

    def _watched(
        self, counted_rules: Sequence[CountedRule], frame: Frame, ask: Callable[[], list[Order]]
    ) -> list[Order]:
        """The orders; counts which of the rules have matched meanwhile."""
        before = [counted.matches for counted in counted_rules]
        orders = ask()
        client = frame.client_id, frame.peer.client_host
        for counted, count in zip(counted_rules, before, strict=True):
            outcome = self.by_name[counted.rule.name]
            if counted.matches > count:
                outcome.first_ns = outcome.first_ns or frame.arrived_ns
                outcome.last_ns = frame.arrived_ns
                outcome.clients[client] += counted.matches - count
            elif counted.reads and not counted.matches:
                _note(outcome, frame)
        return orders


def _note(outcome: Outcome, frame: Frame) -> None:
    """Notes the topics and groups of a frame that a rule has read and not matched."""
    outcome.asked += 1
    if len(outcome.topics) > NAMES_KEPT or len(outcome.groups) > NAMES_KEPT:
        return
    try:
        found = list(parts(frame.api.fields(frame.side), frame.version, frame.values, frame.names))
    except DecodeError:
        return
    outcome.topics.update({part["topic"] for part in found if part.get("topic")})
    outcome.groups.update({part["group"] for part in found if part.get("group")})
