"""A client and its broker with klamm between them, and what each kind of step does to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from klamm.decoders import API, DecodeError
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.schema import Side
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import To
from klamm.proxy.session.paused import Decision, Refuse, Resume, Undecidable, Withhold
from klamm.proxy.session.session import Session
from tests.simulation.bodies import (
    API_VERSIONS,
    BEARERS,
    GREETED,
    PRODUCE,
    TOKENS,
    answer,
    anything,
    bears,
    has_endpoints,
    mangled,
    request,
)
from tests.simulation.capture import Capture
from tests.simulation.edge import Edge
from tests.simulation.edge import World as OfEdge
from tests.simulation.judge import Judge
from tests.simulation.nodes import ADVERTISE, DOMAIN, UNMOVED, Nodes, Places
from tests.simulation.peers import Answer, Asked, Broker, Client, Kind
from tests.simulation.ruling import CODE, RULED, Ruling, Sets

USUAL = ("Produce", "Fetch", "Metadata", "ApiVersions", "DescribeConfigs", "CreateTopics", *RULED)
CLIENT_IDS = (None, "", "app", "app", "orders-service", "ü", "k" * 200)
SIZES = (1, 3, 7, 12, 40, 300, 5000, 1 << 20, 1 << 20)  # the most bytes of a read
FIRST_IDS = (0, 1, 1000, -5, 2**31 - 3)
MOST_AGAIN = 40  # equal requests in a row
LARGE_EACH = 50  # answers that may have node_endpoints, for a large one
COUNTING = 0.6  # of clients; the ids of others are all the same, where no rule could make them ambiguous
AUTHENTICATED = 0.15  # of clients, so many begin with raw SASL tokens
MOST_LARGE = 20  # of them on a connection: of more than 32 MiB a capture does not keep the bytes
LATE = 0.05  # of reads while klamm does not read, so many come all the same
CUT_SHORT = "the client cut a request short"
STRANGE_KINDS, MANGLED_KINDS = 0.04, 0.04  # parts of all kinds
ALIKE = 0.25  # of the kinds of a client, so many have API and version of another one
NEW_API = API.any(900)
HEARTBEAT = Kind(API["Heartbeat"], 4, 0)
STRANGE = 77_777_777  # a correlation id that nobody asks for


class World(OfEdge, Protocol):
    """The parts of the world that a pair uses."""

    context: ClusterContext
    nodes: Nodes
    ruling: Ruling
    captures: bool
    has_rules: bool


def any_kinds(random: Random) -> list[Kind]:
    """Of one client; often two that differ in their values alone."""
    kinds = [any_kind(random)]
    for _ in range(random.randrange(5)):
        alike = random.choice(kinds)._replace(draw=random.randrange(1000))
        kinds.append(alike if random.random() < ALIKE else any_kind(random))
    return kinds


def any_kind(random: Random) -> Kind:
    """Often as the tables have it."""
    drawn = random.random()
    if drawn < STRANGE_KINDS:
        return _strange(random)
    kind = _known(random)
    # what a broker does with such a Produce depends on an `acks` that may not be there
    is_mangled = drawn < STRANGE_KINDS + MANGLED_KINDS and kind.api.name not in RULED
    return kind._replace(form="mangled") if is_mangled else kind


def _strange(random: Random) -> Kind:
    """Of an API that klamm does not know, or of a version."""
    draw = random.randrange(1000)
    if random.random() < 0.3:
        return Kind(NEW_API, random.randrange(3), draw, "strange")
    api = random.choice([api for api in API if api.name not in (*RULED, "ApiVersions")])
    version = api.versions.last + random.randint(1, 3)
    return Kind(api, version, draw, "refused" if api.name in BEARERS else "strange")


def _known(random: Random) -> Kind:
    """Of any API, often of a usual one, in any version."""
    while True:
        api = API[random.choice(USUAL)] if random.random() < 0.6 else random.choice(list(API))
        version = random.randint(api.versions.first, api.versions.last)
        if (api.name, version) != ("SaslHandshake", 0):  # behind it come bytes that are no requests
            return Kind(api, version, random.randrange(1000))


class Pair:
    """`causes`: why this connection may end, or leave requests without answers."""

    def __init__(self, world: World, number: int, draw: int) -> None:
        random = Random(f"pair {draw}")
        kinds = any_kinds(random)
        self.world = world
        counts = world.has_rules or random.random() < COUNTING
        self.client = Client(random.choice(CLIENT_IDS), kinds, random.choice(FIRST_IDS), counts)
        self.broker = Broker()
        self.judge = Judge(self.client, self.broker, world.context.held_limit)
        self.causes: set[str] = set()
        self.first: list[Asked] = []  # tokens whose answers the client needs before it can ask
        self.must_end = 0  # so many bytes of the broker end the connection once klamm has read them
        session = Session(world.context, "1", ADVERTISE, f"10.0.0.{number}:5000", number)
        self.capture = Capture(number) if world.captures else None
        judge = self.judge
        self.edge = Edge(world, session, self._sent, self._told_end, self._closed, judge.told, self.capture)
        self.edge.open()
        if random.random() < AUTHENTICATED:
            self._authenticate(random)

    @property
    def over(self) -> bool:
        return len(self.edge.closed) == 2

    def _sent(self, to: To, data: bytes) -> None:
        reached = self.judge.reached_client if to == "client" else self.judge.reached_broker
        reached(data, self.world.clock.now)

    def _told_end(self, to: To) -> None:
        (self.client if to == "client" else self.broker).told_end = True

    def _closed(self, to: To, reset: bool) -> None:
        (self.client if to == "client" else self.broker).gone = True

    # the client

    def ask(self, random: Random) -> None:
        """The client writes a request."""
        self._ask(random.choice(self.client.kinds), 1)

    def ask_again(self, random: Random) -> None:
        """The client writes the same request several times."""
        self._ask(random.choice(self.client.kinds), random.randint(2, MOST_AGAIN))

    def _ask(self, kind: Kind, times: int) -> None:
        client = self.client
        if client.ended or client.gone or not all(asked.answered for asked in self.first):
            return
        data, awaited = _asked(kind)
        if kind.form == "refused":
            self.causes.add("a request whose answer may carry addresses")
        for _ in range(times):
            correlation = client.next_id()
            frame = request_frame(kind.api, kind.version, correlation, client.client_id, data)
            self._put(kind, correlation, frame, awaited)

    def _put(self, kind: Kind, correlation: int, frame: bytes, awaited: bool = True) -> Asked:
        client = self.client
        start = client.given + len(client.outgoing)
        asked = Asked(len(client.asked), kind, correlation, frame, awaited, self.world.clock.now, start)
        asked.fault = self.world.ruling.fault(kind.api.name)
        asked.meets(asked.fault)
        client.asked.append(asked)
        client.outgoing += frame
        return asked

    def _authenticate(self, random: Random) -> None:
        """The client begins with SaslHandshake 0 and tokens without a header, or with these alone."""
        mechanism = random.choice(list(TOKENS))
        if mechanism != "PLAIN":  # such a token is told from a request by its first two bytes
            self.client.kinds = [kind for kind in self.client.kinds if kind.api is not NEW_API] or [HEARTBEAT]
        is_greeted = mechanism in GREETED
        kind = Kind(API["SaslHandshake"], 0, GREETED.index(mechanism) if is_greeted else 0)
        if is_greeted:
            self._ask(kind, 1)
        for token, reply in TOKENS[mechanism]:
            asked = self._put(kind, 0, _sized(token), reply is not None)
            asked.token, asked.reply = True, _sized(reply or b"")
            if mechanism == "GSSAPI" and asked.awaited:
                self.first.append(asked)

    def client_ends(self, random: Random) -> None:
        """It sends no more, perhaps in the middle of a request."""
        self._end(self.client, random, CUT_SHORT)

    def client_resets(self, random: Random) -> None:
        self._reset("request")

    # the broker

    def answer(self, random: Random) -> None:
        """The broker answers the oldest request, or now and then a later one."""
        waiting = self.broker.waiting
        if not waiting or self.broker.ended or self.broker.gone:
            return
        variants = random.choice([(0,), (0,), (0, 0, 1, 2)])
        for _ in range(random.choice([1, 1, 1, MOST_AGAIN])):
            in_order = not self.client.counts or waiting[0].begins_sasl()
            later = not in_order and len(waiting) > 1 and random.random() < 0.03
            at = random.randrange(len(waiting)) if later else 0
            asked = waiting[at]
            del waiting[at]
            self._write(asked, 4 * asked.kind.draw + random.choice(variants))
            if not waiting:
                break

    def _write(self, asked: Asked, draw: int) -> None:
        api, version, correlation = asked.kind.api, asked.kind.version, asked.correlation
        if asked.token or asked.kind.unknown:
            frame = asked.reply if asked.token else response_frame(api, version, correlation, anything(draw))
            self.broker.outgoing += frame
            self.broker.answers.append(Answer(asked, frame, frame, self.world.clock.now, 0, False))
            return
        large = draw % LARGE_EACH == 0 and has_endpoints(api, version) and self._few_large()
        places = self.world.nodes.now() if bears(api, version) else UNMOVED
        made = answer(api, version, draw, places, large)
        came, goes = (response_frame(api, version, correlation, data) for data in (made.came, made.goes))
        self.broker.outgoing += came
        is_held = len(came) <= self.world.context.held_limit
        expected = None if made.endpoints and (large or not is_held) else goes
        swallowed = not asked.awaited
        if not is_held and (swallowed or bears(api, version) or api.key == API_VERSIONS):
            self.causes.add("the broker's answer is larger than klamm holds")
        changed = None if expected is None else partial(_changed_answer, asked, draw, places, large)
        answered = Answer(asked, came, expected, self.world.clock.now, made.errors, large, swallowed, changed)
        self.broker.answers.append(answered)

    def _few_large(self) -> bool:
        return sum(answer.large for answer in self.broker.answers) < MOST_LARGE

    def answer_wrongly(self, random: Random) -> None:
        """The broker's answer is cut short, or has random bytes, or answers nothing."""
        broker = self.broker
        if broker.ended or broker.gone or not broker.waiting:
            return
        asked = broker.waiting[0]
        if asked.begins_sasl() or asked.kind.unknown:
            return
        api, version = asked.kind.api, asked.kind.version
        # an answer that nobody asked for is taken for that to a Produce with acks=0, where there was one
        acks_0 = any(kind.api.key == PRODUCE for kind in self.client.kinds)
        if random.random() < 0.3 and not acks_0 and self.client.counts:
            self.causes.add("the broker answered nothing that was asked")
            broker.outgoing += response_frame(api, version, STRANGE, DOMAIN.encode())
            self.must_end = self.must_end or broker.given + len(broker.outgoing)
            return
        broker.waiting.popleft()
        whole = answer(api, version, 1, self.world.nodes.now(), False).came
        wrong = whole[: random.randrange(len(whole) + 1)]
        wrong = random.choice([wrong, whole + random.randbytes(9), random.randbytes(random.randrange(40))])
        came = response_frame(api, version, asked.correlation, wrong)
        free = bears(api, version) or api.key == API_VERSIONS
        if free:
            self.causes.add("the broker's answer could not be read")
        broker.outgoing += came
        goes, now = None if free else came, self.world.clock.now
        broker.answers.append(Answer(asked, came, goes, now, None, False, not asked.awaited))

    def broker_ends(self, random: Random) -> None:
        """It closes its side, perhaps in the middle of an answer."""
        self.causes.add("the broker ended")
        self._end(self.broker, random, "the broker cut an answer short")

    def broker_resets(self, random: Random) -> None:
        self._reset("response")

    # both

    def _end(self, peer: Client | Broker, random: Random, cause: str) -> None:
        if peer.ended or peer.gone:
            return
        if peer.outgoing and random.random() < 0.5:
            del peer.outgoing[random.randrange(len(peer.outgoing)) :]
            self.causes.add(cause)
        peer.ended = True

    def _reset(self, side: Side) -> None:
        peer = self.client if side == "request" else self.broker
        if peer.gone:
            return
        self.causes.add(f"reset on the side of {side}s")
        peer.gone = True
        self.edge.reset(side)

    def up(self, random: Random) -> None:
        """klamm reads some bytes of the client."""
        self._read("request", random.randint(1, random.choice(SIZES)), random.random() < LATE)

    def down(self, random: Random) -> None:
        """klamm reads some bytes of the broker."""
        self._read("response", random.randint(1, random.choice(SIZES)), random.random() < LATE)

    def _read(self, side: Side, most: int, late: bool = False) -> bool:
        """Did anything move? `late`: a read comes although klamm has stopped reading, as with uvloop."""
        peer = self.client if side == "request" else self.broker
        if peer.gone or not (self.edge.is_read(side) or (late and peer.outgoing)):
            return False
        if peer.outgoing:
            self.edge.came(side, peer.give(most))
            return True
        if peer.ended and not peer.end_given:
            peer.end_given = True
            self.edge.half_closed(side)
            return True
        return False

    def resolve(self, random: Random) -> None:
        """Somebody decides about the oldest paused frame."""
        decisions: list[Decision] = [Resume(), Resume(), Refuse(CODE), Withhold()]
        self._resolve(random.choice(decisions))

    def _resolve(self, decision: Decision) -> bool:
        if not self.edge.paused or self.over:
            return False
        to, frame = self.edge.paused.pop(0)
        try:
            self.edge.resolve(to, frame, decision)
        except (Undecidable, DecodeError):
            self.edge.resolve(to, frame, Resume())
        return True

    def drain(self, random: Random) -> None:
        """klamm ends the connection between two exchanges."""
        self.causes.add("drained")
        self.edge.drain("drained")

    def settle(self) -> bool:
        """Let all that can go on go on, whole. Did anything move?"""
        moved = self._read("request", 1 << 30)
        while self.broker.waiting and not self.broker.ended and not self.broker.gone:
            asked = self.broker.waiting.popleft()
            self._write(asked, 4 * asked.kind.draw)
        if self.broker.told_end and not self.broker.ended:
            self.broker.ended = True
        moved = self._read("response", 1 << 30) or moved
        return self._resolve(Resume()) or moved

    def unread_bytes(self) -> int:
        """Bytes that klamm has read of frames that the other side does not have whole."""
        return self.client.given + self.broker.given - self.judge.passed


def _sized(token: bytes) -> bytes:
    return len(token).to_bytes(4, "big") + token


def _changed_answer(asked: Asked, draw: int, places: Places, large: bool, sets: Sets) -> bytes:
    api, version = asked.kind.api, asked.kind.version
    return response_frame(
        api, version, asked.correlation, answer(api, version, draw, places, large, sets).goes
    )


def _asked(kind: Kind) -> tuple[bytes, bool]:
    """The body of such a request, and whether it wants an answer."""
    if kind.unknown:
        return anything(kind.draw), True
    asking = request(kind.api, kind.version, kind.draw)
    data = mangled(asking.body, kind.draw) if kind.form == "mangled" else asking.body
    return data, asking.acks != 0


STEPS: dict[str, Callable[[Pair, Random], None]] = {
    "ask": Pair.ask,
    "ask_again": Pair.ask_again,
    "up": Pair.up,
    "answer": Pair.answer,
    "answer_wrongly": Pair.answer_wrongly,
    "down": Pair.down,
    "resolve": Pair.resolve,
    "drain": Pair.drain,
    "client_ends": Pair.client_ends,
    "client_resets": Pair.client_resets,
    "broker_ends": Pair.broker_ends,
    "broker_resets": Pair.broker_resets,
}
