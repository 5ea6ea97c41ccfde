"""klamm's edge in front of a fake cluster, in the process of the test."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import monotonic_ns
from typing import Any, NamedTuple

from klamm.proxy import config
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.cluster.nodes.saved_nodes import Memory
from klamm.proxy.config_types import Address, Listen
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.edge.ends import End
from klamm.proxy.edge.link import Link
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.proxy.session.session import Session
from klamm.rules.engine import Engine
from klamm.rules.file.rule_file import load
from klamm.rules.plan import Planner, Wishes
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import Client, connect
from tests.fakes.waiting import PATIENCE_S, eventually


class Line(NamedTuple):
    kind: str
    level: str
    message: str
    fields: dict[str, Any]


class Lines:
    """In place of the event log: everything that was said."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.exchanges: list[Mapping[str, Any]] = []
        self.dropped = 0

    def event(
        self,
        kind: str,
        message: object,
        level: str = "info",
        *,
        per: Hashable = None,
        each: bool = False,
        most: int = 0,
        ends: str = "",
        **fields: Any,
    ) -> None:
        self.lines.append(Line(kind, level, str(message), fields))

    def settle(self) -> None:
        """Nothing is suppressed here."""

    def exchange(self, fields: Mapping[str, Any]) -> None:
        self.exchanges.append(fields)

    def of(self, kind: str) -> list[Line]:
        return [line for line in self.lines if line.kind == kind]

    def bad(self) -> list[Line]:
        return [line for line in self.lines if line.level != "info"]


class Watched(Proxied):
    """Says when it has dialled every node once, and how many probes were answered."""

    probes = 0

    async def _dial_new(self) -> None:
        await super()._dial_new()
        self.settled.set()

    async def _probed(self, address: Address) -> None:
        await super()._probed(address)
        self.probes += 1

    @cached_property
    def settled(self) -> asyncio.Event:
        return asyncio.Event()


class Edge:
    """A proxied cluster that runs."""

    def __init__(self, proxied: Watched, log: Lines) -> None:
        self.proxied, self.log, self.stats = proxied, log, proxied.stats
        self.clients: list[Client] = []

    @property
    def port(self) -> int:
        return self.proxied.bootstrap_port

    def port_of(self, node_id: int, kind: Any = "broker") -> int:
        port = self.proxied.topology.nodes[NodeKey(kind, node_id)].listen_port
        assert port is not None
        return port

    async def client(
        self, node_id: int | None = None, host: str = "127.0.0.1", kind: Any = "broker"
    ) -> Client:
        """Connected to a node's listener, or to bootstrap."""
        client = await connect(host, self.port if node_id is None else self.port_of(node_id, kind))
        self.clients.append(client)
        return client

    async def close(self) -> None:
        """No client is left, and nothing of klamm."""
        for client in self.clients:
            client.transport.abort()
        await self.proxied.stop()
        await self.empty()

    def rule(self, text: str) -> None:
        """These rules, in the words of a rule file, from now on instead of those before."""
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(f"rules:\n{text}\n" if text else "rules: []\n")
            file.flush()
            found = load(file.name)
        assert found.mistakes == []
        self.engine.load(found.rules, monotonic_ns())

    @property
    def engine(self) -> Engine:
        engine = self.proxied.context.engine
        assert engine is not None
        return engine

    async def links(self, count: int) -> list[Link]:
        """klamm's connections, when there are so many."""
        await eventually(lambda: len(self.proxied.links) == count)
        return list(self.proxied.links)

    async def held_answer(self, broker: Broker) -> Client:
        """A client whose Heartbeat the broker has answered, and whose answer a rule holds."""
        self.rule("  - {api: Heartbeat, side: response, delay: 20s}")
        client = await self.client(1)
        client.send("Heartbeat", 4, {"group_id": "g", "member_id": "m"})
        await broker.asked("Heartbeat")
        [link] = await self.links(1)
        await eventually(lambda: "client" in link.lines and not link.session.pending())
        return client

    async def empty(self) -> None:
        """Wait until no connection is left."""
        await eventually(lambda: not self.proxied.links)

    async def logged(self, kind: str, times: int = 1) -> list[Line]:
        """The lines of a kind, when there are so many."""
        await eventually(lambda: len(self.log.of(kind)) >= times)
        return self.log.of(kind)

    def problems(self) -> dict[str, int]:
        """Counted problems by kind."""
        found: dict[str, int] = {}
        for (*_, kind), count in self.stats.problems.items():
            found[kind] = found.get(kind, 0) + count
        return found

    def closed(self) -> dict[str, int]:
        """Ended connections by reason."""
        return {reason: count for (_, reason), count in self.stats.closed.items()}


ANY_PORT = Listen("127.0.0.1", 0)


def proxied(bootstrap: Any, wishes: Wishes | None = None, **settings: Any) -> tuple[Watched, Lines]:
    """klamm's edge, not started; `bootstrap` is a broker, or a list of (host, port). `state` is the folder
    of what is remembered, the other settings are those of a cluster.
    """
    if isinstance(bootstrap, Broker):
        bootstrap = [(bootstrap.host, bootstrap.port)]
    addresses = tuple(Address(*address) for address in bootstrap)
    settings.setdefault("listen", ANY_PORT)
    state: Path | None = settings.pop("state", None)
    log, limits, shared = Lines(), settings.pop("limits", config.Limits()), settings.pop("shared", None)
    cluster = config.Cluster(addresses, **settings)
    planner, engine = Planner(wishes or Wishes()), Engine(seed=1)
    intercept = Intercept(lambda name: name in engine.by_name)
    memory = None if state is None else Memory(state, cluster, log)  # type: ignore[arg-type]
    made = Watched(cluster, limits, planner, engine, Stats(), log, intercept, memory, shared)  # type: ignore[arg-type]
    return made, log


@asynccontextmanager
async def started(made: Watched, log: Lines, ready: bool = True) -> AsyncIterator[Edge]:
    """Run it; inside, it is ready and has dialled every node, or else is on its way."""
    running = Edge(made, log)
    follower = asyncio.create_task(made.follow())
    try:
        if ready:
            waiting = asyncio.create_task(made.settled.wait())
            await asyncio.wait([follower, waiting], timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if follower.done():
                follower.result()
            assert made.readiness.ready, made.readiness.reason
        yield running
        if follower.done():
            follower.result()
    finally:
        follower.cancel()
        await asyncio.gather(follower, return_exceptions=True)
        await running.close()


@asynccontextmanager
async def edge(bootstrap: Any, **settings: Any) -> AsyncIterator[Edge]:
    """klamm in front of a broker, ready."""
    made, log = proxied(bootstrap, **settings)
    async with started(made, log) as running:
        yield running


@asynccontextmanager
async def cluster(count: int = 1, **settings: Any) -> AsyncIterator[tuple[Edge, list[Broker]]]:
    """That many brokers, with the ids 1, 2, ..., and klamm in front of them."""
    nodes = Cluster()
    brokers = [await Broker(nodes, number).start() for number in range(1, count + 1)]
    try:
        async with edge(brokers[0], **settings) as running:
            yield running, brokers
    finally:
        for broker in brokers:
            await broker.stop()


def ports(edge: Edge) -> Iterator[int]:
    """Where klamm listens for nodes."""
    return (node.listen_port for node in edge.proxied.topology.nodes.values() if node.listen_port is not None)


def parts_of_links() -> int:
    """How many there are of all links. Compiled ones have no weak references."""
    return sum(isinstance(each, Session | Link | End) for each in gc.get_objects())
