"""One proxied cluster at the edge: its listeners, its links, and what klamm asks of it."""

from __future__ import annotations

import asyncio
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from klamm.proxy import config
from klamm.proxy.cluster.advertised import say_unresolved
from klamm.proxy.cluster.asking import Asking
from klamm.proxy.cluster.broker_watch import BrokerWatch
from klamm.proxy.cluster.dialling import ANY_ADDRESS, Dialler
from klamm.proxy.cluster.discovery import Found, Way, about_sasl
from klamm.proxy.cluster.ports import Ports
from klamm.proxy.cluster.saved_nodes import Memory
from klamm.proxy.cluster.strays import Strays
from klamm.proxy.config import Address
from klamm.proxy.control.capturing import Capturing
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.open_files import connections_possible
from klamm.proxy.edge.opened import Opened, opened_now
from klamm.proxy.edge.sockets import tls_context
from klamm.proxy.edge.tap import Tap
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.log.events import Level
from klamm.proxy.metrics.snapshot import ClusterState, NodeState
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.counters import Stats
from klamm.proxy.session.listeners import Listeners
from klamm.proxy.session.session import Session
from klamm.proxy.session.topology import NodeKey, Topology, broker_label
from klamm.rules.engine import Engine
from klamm.rules.plan import Planner

MORE_ROOM = "each takes two open files: raise limits.connections, or the limit of the system (ulimit -n)"
LOW_LIMIT = "each takes two open files: raise the limit of the system (ulimit -n)"
FEW = 100  # connections: a client has one to each broker, and often one more
REFRESH_S = 30.0  # between two looks at the cluster
APART = {  # the fields beside the cluster that are limited apart in the log; of other kinds the api
    "broker_unreachable": ("broker",),
    "unknown_api": ("key",),
    "unknown_version": ("key", "version"),
}
RETRY_FIRST_S, RETRY_LAST_S = 0.5, 15.0  # while the bootstrap servers do not answer


class Proxied:
    """Implements edge.link.Host. `announced` is set when clients may come."""

    def __init__(
        self,
        settings: config.Cluster,
        limits: config.Limits,
        planner: Planner,
        engine: Engine,
        stats: Stats,
        log: EventLog,
        intercept: Intercept,
        memory: Memory | None = None,
    ) -> None:
        self.settings, self.room, self.stats, self.log = settings, limits.connections, stats, log
        self.paused, self.intercept = intercept.pause, intercept
        listen = settings.listen
        ports = listen.ports
        last = ports[-1] if ports else 0
        self.topology = Topology(listen.first, last, dict(settings.ports))
        self.context = ClusterContext(
            settings.name,
            planner,
            self.topology,
            stats,
            settings.allow_unknown_apis,
            limits.frame_bytes,
            limits.held_frame_bytes,
            engine,
        )
        tls = settings.tls
        context = None if tls is None else tls_context(tls.ca, tls.cert, tls.key, tls.verify)
        self.way = Way(settings.connect_timeout_s, context, tls.server_name if tls else None)
        self.dialler = Dialler(self.way, settings.map)
        self.links: dict[Link, Opened] = {}
        self.exchanged: Callable[[dict[str, Any], Listeners], None] = lambda fields, listeners: log.exchange(
            fields
        )
        self.capturing: Capturing | None = None
        self.ports = Ports(settings, self.topology, log, self._accept, self.dialler.own)
        self.strays = Strays(self.topology, self.ports)
        self.memory = memory
        self.topology.remembers = memory is not None and memory.usable
        self.watch = BrokerWatch(settings.name, self.topology, self.dialler, log)
        self.asking = Asking(settings.name, self.dialler, log)
        self.tasks: set[asyncio.Task[None]] = set()
        self.binding = asyncio.Lock()
        self.bootstrap_port = listen.first
        self.ready = False
        self.asks_sasl = self.is_controller = False
        self.had_client = False
        self.reason = f"bootstrap servers {', '.join(map(str, settings.bootstrap))} have not answered yet"
        self.announced = asyncio.Event()

    def _accept(self, target: NodeKey | None) -> asyncio.Protocol:
        """A client comes to the port of this node."""
        return cast(asyncio.Protocol, Link(self, target).client)

    # What a link asks of its cluster.

    def opened(self, link: Link) -> bool:
        """False if there is no room for it."""
        self.had_client = True
        self.links[link] = opened_now()
        link.number = self.links[link].number
        where = self.settings.name, broker_label(link.target)
        self.stats.connections[where] += 1
        self.stats.opened[where] += 1
        if not self.room or self.stats.connections.total() <= self.room:
            return True
        self._count_problem(link.target, "too_many_connections")
        self.say(link, "too_many_connections", "", f"no room for more than {self.room} at once; {MORE_ROOM}")
        return False

    def closed(self, link: Link, reason: str) -> None:
        if link in self.links:
            del self.links[link]
            where = self.settings.name, broker_label(link.target)
            self.stats.connections[where] -= 1
            self.stats.closed[self.settings.name, reason] += 1
            for (api, client_id), count in link.unanswered().items():
                self.stats.unanswered[*where, api, client_id, reason] += count
            self.intercept.forget(link)
            self.strays.remove(link)

    def session(self, link: Link) -> Session:
        host = self.settings.advertise or link.local_address[0]
        client = str(Address(*link.client_address))
        return Session(self.context, broker_label(link.target), host, client, link.number)

    def tap(self, link: Link, mid_stream: bool = False) -> Tap | None:
        if self.capturing is None:
            return None
        client = str(Address(*link.client_address))
        broker = broker_label(link.target)
        return self.capturing.tap(link.number, self.settings.name, broker, client, mid_stream)

    def capture(self, capturing: Capturing | None) -> None:
        """From now on into this one, of connections that are there too; None: no more."""
        before, self.capturing = self.capturing, capturing
        if capturing is not None and self.topology.cluster_id is not None:
            capturing.keeper.cluster(self.settings.name, self.topology.cluster_id)
        for link in self.links:
            if before is not None and link.tap is not None:
                link.tap.closed("the capture ended")
            if link.broker is not None and not link.broker.gone:
                link.listen_in(self.tap(link, mid_stream=True))

    async def connect(self, link: Link, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """To the broker of the link's listener, or to the first of all known that answers. Raises OSError."""
        target, topology = link.target, self.topology
        node = None if target is None else topology.nodes.get(target) or topology.remembered.get(target)
        if node is not None:
            try:
                return await self.dialler.dial(Address(node.host, node.port), make)
            except OSError:
                self._count_problem(target, "broker_unreachable")
                if node.key in topology.nodes or node.key.kind == "controller":
                    raise
        failures: list[str] = []
        for address in self._candidates():
            try:
                transport = await self.dialler.dial(address, make)
            except OSError as error:
                failures.append(str(error))
            else:
                self.asking.answered = address
                self._led(link, address)
                return transport
        self._count_problem(None, "broker_unreachable")
        raise OSError("; ".join(failures) or "no broker is known")

    def _led(self, link: Link, address: Address) -> None:
        """To the first broker that answered, whatever port the client came to."""
        port = link.local_address[1]
        if port != self.bootstrap_port:
            message = f"the broker of port {port} is not known yet: led to {address} until an answer names it"
            self.log.event("led_elsewhere", message, "warning", cluster=self.settings.name, per=port)
            self.strays.add(link, address)

    def _count_problem(self, target: NodeKey | None, kind: str) -> None:
        self.stats.problems[self.settings.name, broker_label(target), "", kind] += 1

    async def bind(self) -> None:
        """A listener for every node that has none."""
        async with self.binding:
            for node in self.topology.unbound():
                await self.ports.open_for(node)
        self.strays.lead_back_soon()
        self._say_changes()
        if self.memory is not None:
            self.keep(self.memory.keep(self.topology))

    def say(self, link: Link, kind: str, api: str, message: str, more: dict[str, Any] | None = None) -> None:
        fields = {"cluster": self.settings.name, "broker": broker_label(link.target), **(more or {})}
        fields["connection"] = str(Address(*link.client_address))
        if api:
            fields["api"] = api
        if kind == "rule":  # somebody asked for these lines
            self.log.event(kind, message, per=fields.get("rule"), each=True, **fields)
            return
        per = tuple(fields.get(name) for name in ("cluster", "rule", *APART.get(kind, ("api",))))
        self.log.event(kind, message, "warning", per=per, **fields)

    def exchange(self, link: Link, fields: dict[str, Any], listeners: Listeners) -> None:
        fields["cluster"], fields["broker"] = self.settings.name, broker_label(link.target)
        fields["connection"], fields["connection_id"] = str(Address(*link.client_address)), link.number
        self.exchanged(fields, listeners)

    def failed(self, link: Link, error: Exception) -> None:
        self._count_problem(link.target, "defect")
        self._defect(error, connection=str(Address(*link.client_address)))

    def _defect(self, error: BaseException, **fields: Any) -> None:
        where = [line.strip() for line in traceback.format_tb(error.__traceback__)[-3:]]
        message = f"klamm failed: {error!r}; please report it"
        self.log.event("defect", message, "error", cluster=self.settings.name, where=where, **fields)

    def keep(self, task: Awaitable[None]) -> None:
        """Run it; a failure is a defect of klamm and is logged as one."""
        assert isinstance(task, Coroutine)
        running = asyncio.get_running_loop().create_task(task)
        self.tasks.add(running)
        running.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._defect(error)

    # The other end.

    def _candidates(self) -> list[Address]:
        """Where a bootstrap connection may lead: what the configuration names, then every broker known."""
        known = [
            Address(node.host, node.port)
            for node in self.topology.nodes.values()
            if node.key.kind == "broker"
        ]
        first = [] if self.asking.answered is None else [self.asking.answered]
        return list(dict.fromkeys([*first, *self.settings.bootstrap, *known]))

    async def follow(self) -> None:
        """Find the cluster, let clients in, and keep looking at it for as long as klamm runs."""
        if self.settings.advertise is not None:
            self.keep(say_unresolved(self.settings.advertise, self.settings.name, self.log))
        await self._find()
        self.bootstrap_port = await self.ports.open_bootstrap()
        self.ready, self.reason = True, ""
        self.announced.set()
        self._say_unused_map()
        while True:
            await self._dial_new()
            await asyncio.sleep(REFRESH_S)
            try:
                await self.watch.look(REFRESH_S, self.asking.greet)
                if not self.asks_sasl:
                    await self._look_again()
                await self.bind()  # a port that was taken may be free by now
                await self.ports.open_ahead(whole_range=False)
            except Exception as error:
                self._defect(error)

    def _say_unused_map(self) -> None:
        """A misspelt host would go unnoticed. Behind SASL the nodes are not known yet."""
        nodes = {Address(node.host, node.port) for node in self.topology.nodes.values()}
        for unused in self.settings.map.keys() - nodes - set(self.settings.bootstrap) if nodes else ():
            said = ", ".join(map(str, sorted(nodes)))
            message = f"map: no node advertises {unused} now; they advertise {said}"
            self.log.event("map_unused", message, "warning", cluster=self.settings.name, per=unused)

    async def _look_again(self) -> None:
        try:
            self._learn(await self.asking.ask_any(self._candidates()))
        except OSError as error:
            if self.ready:
                self.log.event("unreachable", f"{error}; trying again", "error", cluster=self.settings.name)
            self.ready, self.reason = False, str(error)
        else:
            if not self.ready:
                self.log.event("reachable", "the cluster answers again", cluster=self.settings.name)
            self.ready, self.reason = True, ""

    async def _find(self) -> None:
        wait_s, said = RETRY_FIRST_S, ""
        patience = self.asking.patience()
        while True:
            try:
                found = await self.asking.ask_any(self._candidates())
                break
            except OSError as error:
                self.reason = str(error)
                if self.reason != said:
                    said = self.reason
                    self.log.event(
                        "unreachable", f"{said}; trying again", "error", cluster=self.settings.name, per=said
                    )
            finally:
                patience.cancel()
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_LAST_S)
        if self.memory is not None:
            self.memory.recall(self.topology, found.cluster_id)
        self._learn(found)
        self.asks_sasl, self.is_controller = found.asks_sasl, found.is_controller
        if found.is_controller:
            self.asking.say_controller()
        if found.asks_sasl:
            self.log.event("sasl", about_sasl(found.mechanisms), "warning", cluster=self.settings.name)
        await self.bind()
        ahead = await self.ports.open_ahead(whole_range=self.asks_sasl)
        possible = connections_possible(ahead)
        if possible < FEW and possible <= self.room:
            message = f"there is room for {possible} connections at once; {LOW_LIMIT}"
            self.log.event("few_connections", message, "warning", cluster=self.settings.name)
        self.room = min(self.room, possible)

    def _learn(self, found: Found) -> None:
        if found.cluster_id is not None and self.topology.cluster_id not in (None, found.cluster_id):
            before = self.topology.cluster_id
            message = f"the bootstrap servers lead to cluster {found.cluster_id}; before it was {before}"
            self.log.event("cluster_changed", message, "error", cluster=self.settings.name)
        self.topology.cluster_id = found.cluster_id or self.topology.cluster_id
        if self.capturing is not None and self.topology.cluster_id is not None:
            self.capturing.keeper.cluster(self.settings.name, self.topology.cluster_id)
        for key, address in found.nodes.items():
            self.topology.learn(key.kind, key.node_id, *address)
        self._say_changes()

    def _say_changes(self) -> None:
        changes, self.topology.changes = self.topology.changes, []
        for key, change in changes:
            level: Level = "warning" if " moved " in change else "info"  # one that flaps: once a minute
            self.log.event("topology", change, level, cluster=self.settings.name, per=key)

    async def _dial_new(self) -> None:
        await self.watch.meet(self.watch.dial if self.asks_sasl else self.asking.ask)

    # What it tells.

    def listening(self) -> Address:
        """Where clients bootstrap."""
        host = self.settings.advertise or self.settings.listen.host
        return Address(ANY_ADDRESS.get(host, host), self.bootstrap_port)

    def state(self) -> ClusterState:
        host = self.listening().host
        named, unnamed = self.topology.nodes.values(), self.topology.unnamed()
        nodes = sorted([*named, *unnamed], key=lambda node: node.key)
        return ClusterState(
            self.settings.name,
            tuple(map(str, self.settings.bootstrap)),
            str(self.listening()),
            self.topology.cluster_id,
            self.ready,
            self.reason,
            tuple(
                NodeState.of(
                    node, host, self.watch.up(node), node in unnamed, self.ports.unbound.get(node.key, "")
                )
                for node in nodes
            ),
            self.is_controller and all(node.key.kind == "controller" for node in named),
            any(node.key.kind == "broker" for node in named),
            self.asks_sasl if self.announced.is_set() else None,
        )

    def in_flight(self) -> Counter[tuple[str, str]]:
        waiting: Counter[tuple[str, str]] = Counter()
        for link in self.links:
            if link.broker is not None:
                waiting[self.settings.name, broker_label(link.target)] += link.session.pending()
        return waiting

    async def stop(self) -> None:
        self.ports.close()
        for link in list(self.links):
            link.shut()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self.memory is not None:
            self.memory.keep_now(self.topology)
