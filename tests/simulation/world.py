"""A simulated cluster behind klamm: connections that share one context, played step by step from one seed."""

from __future__ import annotations

from random import Random
from typing import Any

from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.observing.listeners import Listeners
from klamm.proxy.session.rewriting.topology import Topology
from klamm.rules.engine import Engine
from klamm.rules.plan import Wishes
from tests.proxy.traffic import planner
from tests.simulation.bodies import PASSWORD
from tests.simulation.clock import Clock
from tests.simulation.ends import captured, settled, stalls, totals
from tests.simulation.judge import Broken
from tests.simulation.listening import HEARD, WISHED
from tests.simulation.nodes import FIRST, LAST, Nodes
from tests.simulation.pair import STEPS, Pair
from tests.simulation.ruling import Ruling
from tests.simulation.steps import History, Step, history

MOST_ROUNDS = 100_000  # of settling: a history that needs more never ends
FEW_PENDING = 3000  # bytes of pending requests beyond which a client is not read, in some worlds
SMALL = 300  # bytes of the largest frame that klamm holds, in some worlds
BUSY, NEVER = 10_000, 1 << 62  # so many connections are busy, in some worlds, until that time (ns)
WISHES = (
    *(Wishes(), Wishes("header"), Wishes("full", None), Wishes("header", None)),
    *(Wishes("full", frozenset(), wished) for wished in WISHED),
)


class World:
    def __init__(self, seed: int) -> None:
        random = Random(f"world {seed}")
        self.clock, self.nodes, self.ruling = Clock(), Nodes(), Ruling()
        self.engine = Engine(seed)
        self.wishes = random.choice(WISHES)
        self.context = ClusterContext(
            "test", planner(self.wishes), Topology(FIRST, LAST), Stats(), engine=self.engine
        )
        crowd = self.context.crowd
        if random.random() < 0.25:
            crowd.pending = FEW_PENDING
        if random.random() < 0.25:
            crowd.before, crowd.since = BUSY, NEVER
        if random.random() < 0.2:
            self.context.held_limit = SMALL
        for listener in HEARD:
            listener.count = 0
        self.pairs: dict[int, Pair] = {}
        self.all: list[Pair] = []  # those that are over, too
        self.captures = random.random() < 0.5
        self.has_rules = any(step.kind == "rules" for step in history(seed))
        self.trail: list[str] | None = None  # a line for each step, where somebody wants them

    def play(self, steps: History) -> None:
        """Raises Broken."""
        for step in steps:
            self.take(step)
            if self.trail is not None:
                self.trail.append(f"{self.clock.now / 1e6:12.3f} ms  {step}  {self._state(step)}")
            self.look()
        self.end()

    def take(self, step: Step) -> None:
        random = Random(step.draw)
        self.clock.forward(random.randrange(1_000_000))
        of_all = {"wait": self.wait, "move": self.move, "rules": self.rules}
        if step.kind in of_all:
            of_all[step.kind](random)
        elif step.kind == "open":
            self.open(step)
        elif step.connection in self.pairs:
            STEPS[step.kind](self.pairs[step.connection], random)

    def open(self, step: Step) -> None:
        """A new connection, unless there is one of this number."""
        before = self.pairs.get(step.connection)
        if before is None or before.over:
            self.pairs[step.connection] = Pair(self, len(self.all), step.draw)
            self.all.append(self.pairs[step.connection])

    def wait(self, random: Random) -> None:
        self.clock.forward(random.choice([10**6, 10**8, 10**9]) * random.randint(1, 3))

    def move(self, random: Random) -> None:
        self.nodes.move(random)

    def rules(self, random: Random) -> None:
        """Other rules than before, or none."""
        self.engine.load(self.ruling.draw(random), self.clock.now)
        for pair in self.all:
            for asked in pair.client.asked:
                if not asked.answered and (asked.awaited or not asked.arrived):
                    asked.meets(self.ruling.fault(asked.kind.api.name))

    def bind_ports(self) -> None:
        topology = self.context.topology
        for node in topology.unbound():
            topology.bound(node, topology.port_for(node.key))

    def told(self, text: str, *fields: object) -> None:
        """klamm tells something, to the log or to a listener."""
        if self.trail is not None:
            self.trail.append(f"                 klamm tells {text}: {' '.join(map(str, fields))}")
        if any(PASSWORD in f"{field}" for field in fields):
            raise Broken("a secret reaches nothing", f"{text} has it: {fields}")

    def heard(self, fields: dict[str, Any], listeners: Listeners) -> None:
        """An exchange, for the log and for listeners; bodies are for the latter alone."""
        self.told("exchange", {name: value for name, value in fields.items() if name != "frames"})
        for listener in HEARD:
            listener.count += listener in listeners

    def look(self) -> None:
        """What holds at any time."""
        held = sum(pair.edge.session.connection.held for pair in self.all)
        if held != self.context.held.now or held < 0:
            raise Broken("held bytes are counted", f"{self.context.held.now} of {held} bytes")
        unread = sum(pair.unread_bytes() for pair in self.all)
        if held > unread:
            raise Broken("held bytes are of frames that are not whole", f"{held} of {unread} bytes")

    def _state(self, step: Step) -> str:
        if step.connection not in self.pairs:
            return ""
        pair = self.pairs[step.connection]
        client, broker, judge = pair.client, pair.broker, pair.judge
        return (
            f"{len(client.asked)} asked, {len(judge.at_broker)} at the broker, "
            f"{len(broker.answers)} answers, {len(judge.at_client)} at the client, "
            f"{len(client.outgoing)} + {len(broker.outgoing)} bytes unread"
            f"{', ended: ' + pair.edge.reason if pair.edge.reason else ''}"
        )

    def end(self) -> None:
        """Let everything go on, look, then end all clients, and look again."""
        self._settle()
        for pair in self.all:
            settled(pair)
        totals(self.all, self.context.stats, self.wishes.metering == "full")
        self._heard()
        for pair in self.all:
            pair.client.ended = True
        self._settle()
        self._heard()
        for pair in self.all:
            if not pair.over and not stalls(pair):
                raise Broken("an end of both sides ends the connection", f"reason {pair.edge.reason}")
            settled(pair)
            captured(pair)
        self.look()
        if self.context.held.now and all(pair.over for pair in self.all):
            raise Broken("nothing is held at the end", f"{self.context.held.now} bytes")

    def _heard(self) -> None:
        for wish in self.wishes.listeners:
            wish.sink.judge(self.all)

    def _settle(self) -> None:
        for _ in range(MOST_ROUNDS):
            moved = [pair.settle() for pair in self.all]
            if any(moved):
                continue
            if not self.clock.due:
                return
            self.clock.next()
        raise Broken("a connection comes to rest", f"not in {MOST_ROUNDS} rounds")
