"""Rules tried on captured traffic: what each would have matched and ordered. Nothing is sent.

The frames are those that came, in their times. What a client would have done after a rule has acted on it
is not known: it goes on as it was captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

from klamm.captures.captured import Captured, Connection
from klamm.captures.frames import NAMING, Framing
from klamm.decoders import API, DecodeError, EncodeError, encode
from klamm.decoders.schema import Side
from klamm.rules.engine import SESSION_NOT_FOUND, Engine, Gate
from klamm.rules.frame import Frame
from klamm.rules.orders import ENDING, Answer, OnAnswer, Order
from klamm.rules.parts import parts
from klamm.rules.rule import Action, Draw, Rule
from klamm.rules.state import Tally

BEGIN_ANEW = Answer({"error_code": SESSION_NOT_FOUND})  # the engine's own, to requests of unknown sessions
NAMES_KEPT = 1000  # topics and groups that a rule could have matched, and did not

Client = tuple[str | None, str]  # client id, host
Acts = list[Callable[[Frame], Iterable[Order]]]


class Flow(NamedTuple):
    """Frames that a header tells apart."""

    side: Side
    api_key: int
    version: int
    client_id: str | None
    host: str
    broker: str
    cluster: str


@dataclass(slots=True)
class Outcome:
    """What became of one rule."""

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
class Heard:
    """An action that tells what it orders. `observes` as that of the action."""

    action: Action
    tell: Callable[[Frame, Order], None]
    observes: bool
    name: ClassVar[str] = "heard"
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
class _Talk:
    """One connection: its gate, the rules for each of its flows, and what waits for answers."""

    gate: Gate
    tallies: dict[tuple[int, int, Side, str | None], tuple[Tally, ...]] = field(default_factory=dict)
    waiting: dict[int, tuple[Frame, Acts]] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)  # requests that the broker would not have seen


class Trial:
    """Rules on their way through one capture. `listener` hears of each order as it is given."""

    def __init__(self, rules: Sequence[Rule], seed: int, listener: Listener) -> None:
        self.outcomes = [Outcome(rule) for rule in rules]
        self.listener = listener
        self.engine = Engine(seed)
        self.framing = Framing()
        self.talks: dict[Connection, _Talk] = {}
        self.flows: Counter[Flow] = Counter()
        self.sessions_unknown = 0  # Fetch requests that go on with what was not seen to begin
        self.by_name = {outcome.rule.name: outcome for outcome in self.outcomes}
        self.begun = False

    def run(self, rows: Iterable[Captured]) -> None:
        """All of them, in order."""
        for row in rows:
            if not self.begun:
                self.begun = True
                self.engine.load([self._heard(outcome) for outcome in self.outcomes], row.time_ns)
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
        for outcome, tally in zip(self.outcomes, self.engine.tallies, strict=False):
            outcome.matches, outcome.hits, outcome.failures = tally.matches, tally.hits, tally.failures

    def _heard(self, outcome: Outcome) -> Rule:
        def tell(frame: Frame, order: Order) -> None:
            self.listener(outcome, frame, order)

        do = tuple(Heard(action, tell, getattr(action, "observes", False)) for action in outcome.rule.do)
        return replace(outcome.rule, do=do)

    def _talk(self, row: Captured) -> _Talk:
        """The connection's, which opens now if nothing was seen of it yet."""
        of = row.connection
        assert of is not None
        talk = self.talks.get(of)
        if talk is None:
            gate = Gate(
                self.engine,
                self.engine.peer(of.cluster, of.broker, of.client, of.number),
                self.framing.topics.get,
            )
            talk = self.talks[of] = _Talk(gate)
            frame = Frame(API["ApiVersions"], 0, "request", b"", None, gate.peer, row.time_ns)
            rules = tuple(tally for tally in self.engine.tallies if tally.rule.event == "connect")
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
        acts: Acts = [order.act for order in orders if isinstance(order, OnAnswer)]
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

    def _made(self, talk: _Talk, request: Frame, values: dict[str, Any], acts: Acts) -> None:
        """klamm's own answer: what waits for the answer is done to it."""
        try:
            body = encode(values, request.api.key, request.version, "response")
        except EncodeError:
            return
        of = request.client_id, talk.gate.peer, request.arrived_ns, request
        talk.gate.answered(acts, Frame(request.api, request.version, "response", body, *of))

    def _orders(self, talk: _Talk, frame: Frame) -> list[Order]:
        """What the rules for such frames ask for of this one."""
        peer, now = talk.gate.peer, frame.arrived_ns
        frame.peer = peer
        kind = frame.api.key, frame.version, frame.side, frame.client_id
        tallies = talk.tallies.get(kind)
        if tallies is None:
            tallies = self.engine.concerned(frame.api, frame.version, frame.side, peer, frame.client_id)
            talk.tallies[kind] = tallies
        of = frame.client_id, peer.client_host, peer.broker, peer.cluster
        self.flows[Flow(frame.side, frame.api.key, frame.version, *of)] += 1
        if not tallies and not self.engine.learns_from(frame.api, frame.side):
            return []

        def ask() -> list[Order]:
            return talk.gate.orders(frame, talk.gate.look(tallies, frame.client_id, now), now)

        return self._watched(tallies, frame, ask)

    def _watched(self, tallies: Sequence[Tally], frame: Frame, ask: Callable[[], list[Order]]) -> list[Order]:
        """What is asked for, and which of the rules have matched meanwhile."""
        before = [tally.matches for tally in tallies]
        orders = ask()
        client = frame.client_id, frame.peer.client_host
        for tally, count in zip(tallies, before, strict=True):
            outcome = self.by_name[tally.rule.name]
            if tally.matches > count:
                outcome.first_ns = outcome.first_ns or frame.arrived_ns
                outcome.last_ns = frame.arrived_ns
                outcome.clients[client] += tally.matches - count
            elif tally.reads and not tally.matches:
                _note(outcome, frame)
        return orders


def _note(outcome: Outcome, frame: Frame) -> None:
    """What a frame is about that a rule has read, and did not match."""
    outcome.asked += 1
    if len(outcome.topics) > NAMES_KEPT or len(outcome.groups) > NAMES_KEPT:
        return
    try:
        found = list(parts(frame.api.fields(frame.side), frame.version, frame.values, frame.names))
    except DecodeError:
        return
    outcome.topics.update({part["topic"] for part in found if part.get("topic")})
    outcome.groups.update({part["group"] for part in found if part.get("group")})
