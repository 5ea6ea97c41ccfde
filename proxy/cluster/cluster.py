"""One proxied cluster: its listening ports, its links, and klamm's own requests to it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, cast

from klamm.proxy import config
from klamm.proxy.cluster import principals
from klamm.proxy.cluster.client_ports.advertised import say_unresolved
from klamm.proxy.cluster.client_ports.named_ports import ports_of
from klamm.proxy.cluster.client_ports.redirected import redirected_by
from klamm.proxy.cluster.client_ports.shared import Shared, shared_by
from klamm.proxy.cluster.client_ports.tls_files import of_brokers, of_clients
from klamm.proxy.cluster.client_sasl import Doors, follow_all, followed, sasl_of
from klamm.proxy.cluster.conversation import Way
from klamm.proxy.cluster.kept_tasks import KeptTasks
from klamm.proxy.cluster.leader import Leader
from klamm.proxy.cluster.leading import Leading
from klamm.proxy.cluster.leaving import Leaving
from klamm.proxy.cluster.nodes.node_states import NodeStates
from klamm.proxy.cluster.nodes.saved_nodes import Memory
from klamm.proxy.cluster.nodes.topology_changes import say_changes, say_other_cluster
from klamm.proxy.cluster.own_requests.asking import Asking
from klamm.proxy.cluster.own_requests.broker_watch import BrokerWatch
from klamm.proxy.cluster.own_requests.dialling import Dialler, say_unused
from klamm.proxy.cluster.own_requests.discovery import Found
from klamm.proxy.cluster.own_requests.held_connections import HeldConnections
from klamm.proxy.cluster.own_requests.probe import Probe
from klamm.proxy.cluster.own_requests.readiness import Readiness
from klamm.proxy.cluster.own_sasl.credentials import credentials_of, say_open
from klamm.proxy.cluster.own_sessions import OwnSessions
from klamm.proxy.cluster.problems import Problems
from klamm.proxy.config_types import Address
from klamm.proxy.control.audit.auditing import Auditing
from klamm.proxy.control.capturing import Capturing
from klamm.proxy.control.exchange import place
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.open_files import SPARE_LISTENERS, connections_possible
from klamm.proxy.edge.opened import Opened, opened_now
from klamm.proxy.edge.sockets import Arrival
from klamm.proxy.edge.tap import Tap
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.metrics.snapshot import ClusterState
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.observing.listeners import Listeners
from klamm.proxy.session.opaque import OpaqueSession
from klamm.proxy.session.rewriting.topology import NodeKey, Topology, broker_label
from klamm.proxy.session.session import Session
from klamm.rules.engine import Engine
from klamm.rules.plan import Planner

LET_IN_S = 10.0  # after so long clients may come, though the cluster is not found yet
REFRESH_S = 30.0  # between two of klamm's own requests for the nodes
Exchanged = Callable[[dict[str, Any], Listeners], None]


class Proxied:
    """Implements edge.link.Host. `announced` is set when the cluster is found."""

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
        shared: Shared | None = None,
    ) -> None:
        self.settings, self.stats, self.log = settings, stats, log
        self.shared = shared = shared or shared_by(limits)
        self.problems = Problems(settings.name, stats, log)
        self.say, self.failed = self.problems.say, self.problems.failed
        self.paused, self.intercept = intercept.pause, intercept
        listen = settings.listen
        last = listen.ports[-1] if listen.ports else 0
        self.topology = Topology(listen.first, last, dict(settings.ports))
        self.context = ClusterContext(
            settings.name,
            planner if settings.transparent is None else planner.unchanging(),
            self.topology,
            stats,
            settings.allow_unknown_apis,
            limits.frame_bytes,
            limits.held_frame_bytes,
            shared.held,
            limits.unruled,
            shared.crowd,
            engine,
        )
        tls, self.upstream_tls = settings.tls, of_brokers(settings.tls)
        context = None if self.upstream_tls is None else self.upstream_tls.context
        name = tls.server_name if tls else None
        way = Way(settings.connect_timeout_s, context, name, credentials_of(settings, log))
        self.dialler = Dialler(way, settings.map)
        if self.upstream_tls is not None:
            self.upstream_tls.taken = self.dialler.take_tls
        self.links: dict[Link, Opened] = {}
        self.exchanged: Exchanged = lambda fields, _: log.exchange(fields)
        self.capturing: Capturing | None = None
        self.auditing: Auditing | None = None
        self.leader: Leader | None = None
        self.later = shared.rounds.wait
        self.tls, self.sasl = of_clients(settings.listen_tls), sasl_of(settings.listen_sasl)
        own, self.redirected = self.dialler.own, redirected_by(settings, self.topology, self.dialler, log)
        find = None if self.redirected is None else self.redirected.lead
        whole = settings, self.topology, log, self.accept, own, self.tls, self.problems, find, shared
        self.ports = ports_of(*whole)
        self.leaving = Leaving(settings.name, self.links, self.ports, stats, limits)
        self.memory = memory if self.redirected is None else None  # there are no ports to remember
        self.topology.remembers = self.memory is not None and self.memory.usable
        self.watch = BrokerWatch(settings.name, self.topology, self.dialler, log)
        self.node_states = NodeStates(self.topology, self.watch, self.ports)
        self.asking = Asking(settings.name, self.dialler, log)
        self.leading = Leading(
            settings,
            self.topology,
            self.dialler,
            self.asking,
            self.ports,
            OwnSessions(self.dialler, self.problems),
            self.problems,
            log,
            self.redirected,
        )
        self.doors = Doors(self)
        self.tasks = KeptTasks(self.problems.defect)
        self.held = HeldConnections(self.watch, self.dialler, self.tasks.run)
        self.binding = asyncio.Lock()
        self.readiness = Readiness(settings.name, settings.bootstrap, log)
        self.is_controller = self.had_client = False
        self.let_in = False  # may clients come?
        self.announced = asyncio.Event()

    def accept(self, target: NodeKey | None, came: Arrival | None) -> asyncio.Protocol:
        """The protocol of a client that comes to the port of this node, or was redirected to klamm."""
        if self.redirected is not None and came is not None:
            target = self.redirected.target(came.local)
        if self.sasl is not None and came is not None:
            return self.doors.gate(self.sasl, target, came, lambda: Link(self, target, came))
        return cast(asyncio.Protocol, Link(self, target, came).client)

    # The methods of edge.link.Host.

    def opened(self, link: Link) -> bool:
        """False if there is no room for it."""
        self.had_client = True
        if not principals.opened(link, self.settings.name, self.stats):
            return False
        self.links[link] = opened_now(link.number)
        link.number = self.links[link].number
        where = self.settings.name, broker_label(link.target)
        self.stats.connections[where] += 1
        self.stats.opened[where] += 1
        self.leaving.opened(link)
        if self.leader is not None:
            self.leader.opened(self.settings.name, link.number, link.client_address[0], link.principal)
        if self.auditing is not None:
            self.auditing.opened(link, self.settings.name)
        no_room = self.shared.room.enter(link.client_address[0], link.principal)
        self.shared.crowd.connected(self.shared.room.total)
        if no_room is None:
            return True
        self.problems.no_room(link, no_room)
        return False

    def no_room(self, number: int, why: str) -> None:
        """The lead has no room for a connection: end it."""
        for link in [link for link, opened in self.links.items() if opened.number == number]:
            self.problems.no_room(link, why)
            link.finish("too many connections", reset=True)

    def closed(self, link: Link, reason: str) -> None:
        if link in self.links:
            del self.links[link]
            if self.leader is not None:
                self.leader.closed(link.number)
            if self.auditing is not None:
                self.auditing.closed(link, reason)
            where = self.settings.name, broker_label(link.target)
            self.stats.connections[where] -= 1
            self.shared.room.leave(link.client_address[0], link.principal)
            self.shared.crowd.connected(self.shared.room.total)
            self.stats.closed[self.settings.name, reason] += 1
            principals.closed(link, self.settings.name, self.stats)
            for memory, count in () if link.broker is None else link.session.unanswered():
                counters = memory.counters
                self.stats.unanswered[*where, counters.api, counters.client_id, reason] += count
            self.intercept.forget(link)
            self.leading.strays.remove(link)
            if self.redirected is not None:
                self.redirected.closed(link)
            self.leaving.closed(link, reason)

    def session(self, link: Link) -> Session:
        host = self.settings.advertise or link.local_address[0]
        client = str(Address(*link.client_address))
        if link.opaque and self.redirected is not None:
            self.redirected.say_opaque(link)
            return OpaqueSession(self.context, broker_label(link.target), client, link.number)
        return Session(self.context, broker_label(link.target), host, client, link.number, link.principal)

    def tap(self, link: Link, mid_stream: bool = False) -> Tap | None:
        if self.capturing is None or link.opaque:
            return None
        client = str(Address(*link.client_address))
        broker = broker_label(link.target)
        return self.capturing.tap(link.number, self.settings.name, broker, client, mid_stream, link.principal)

    def capture(self, capturing: Capturing | None) -> None:
        """From now on capture into this one, also connections that are open already; None: into none."""
        before, self.capturing = self.capturing, capturing
        if capturing is not None and self.topology.cluster_id is not None:
            capturing.keeper.cluster(self.settings.name, self.topology.cluster_id)
        for link in self.links:
            if before is not None and link.tap is not None:
                link.tap.closed("the capture ended")
            if link.broker is not None and not link.broker.gone:
                link.listen_in(self.tap(link, mid_stream=True))

    async def connect(self, link: Link, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Raises OSError."""
        return await self.leading.connect(link, make)

    async def bind(self) -> None:
        """Open a listening port for every node that has none."""
        if self.leader is not None:
            await self.leader.bind(self)
            self.leading.strays.lead_back_soon()
            return
        async with self.binding:
            await self.ports.open_for_all(self.topology.unbound())
        self.leading.strays.lead_back_soon()
        say_changes(self.topology, self.settings.name, self.log)
        if self.memory is not None:
            self.keep(self.memory.keep(self.topology))

    def exchange(self, link: Link, fields: dict[str, Any], listeners: Listeners) -> None:
        place(fields, link, self.settings.name)
        principals.name(link, fields)
        self.exchanged(fields, listeners)

    def keep(self, task: Awaitable[None]) -> None:
        """Run it; a failure is a defect of klamm and is logged as one."""
        self.tasks.run(task)

    # The brokers.

    async def follow(self, alone: bool = True) -> None:
        """Find the cluster, let clients in, and go on looking at it. `alone`: as in Clusters.start."""
        say_open(self.settings, self.log)
        if any(followed(self)) or self.sasl is not None:
            self.keep(follow_all(self))
        self.ports.expect()
        if self.redirected is not None:  # its clients need not wait until klamm has found the cluster
            await self.ports.open_bootstrap()
        await self._learn_first(await self._find_while_clients_wait(LET_IN_S if alone else None))
        await self._let_clients_in()
        self.keep(say_unresolved(self.ports.told(), self.settings.name, self.log))
        self.readiness.found()
        self.announced.set()
        probe = Probe(self.dialler, self.watch, self.leading.candidates, lambda: self.context.asks_sasl)
        self.keep(probe.follow(self.readiness, self._probed, self.problems.defect))
        self.keep(self.held.follow())
        say_unused(self.settings, self.topology, self.log)
        while True:
            await self._dial_new()
            await asyncio.sleep(REFRESH_S)
            try:
                await self._at_most_for_a_while(self.watch.look(REFRESH_S, self.asking.greet))
                if not self.context.asks_sasl:
                    await self._look_again()
                await self.bind()  # a port that was taken may be free by now
                await self.ports.open_ahead(whole_range=False)
                if self.redirected is not None:
                    await self.redirected.resolve()
            except Exception as error:
                self.problems.defect(error)

    async def _look_again(self, *first: Address) -> None:
        changes = self.readiness.changes
        try:
            self._learn(await self.asking.ask_any(dict.fromkeys([*first, *self.leading.candidates()])))
        except OSError as error:
            if self.readiness.changes == changes:  # else a probe knows better by now
                self.readiness.lost(str(error))
        else:
            self.readiness.answered()

    async def _probed(self, address: Address) -> None:
        if self.context.asks_sasl:
            self.readiness.answered()
        elif self.readiness.asks_again():
            await self._look_again(address)

    async def _find_while_clients_wait(self, at_most_s: float | None) -> Found:
        """They come after `at_most_s` in any case: they may get answers where klamm gets none. Raises OSError
        if the bootstrap port cannot be opened.
        """
        finding = asyncio.create_task(self.asking.until_answered(self.leading.candidates, self.readiness))
        try:
            await asyncio.wait([finding], timeout=at_most_s)
            if not finding.done():
                self._recall(None)
                await self.ports.open_ahead(whole_range=True)
                await self._let_clients_in()
                self.asking.say_not_found(self.listening(), self.topology.unnamed())
            return await finding
        finally:
            finding.cancel()

    async def _let_clients_in(self) -> None:
        await self.ports.open_bootstrap()
        self.let_in = True

    def _recall(self, cluster_id: str | None) -> None:
        if self.memory is not None and not self.let_in:
            self.memory.recall(self.topology, cluster_id)

    async def _learn_first(self, found: Found) -> None:
        self._recall(found.cluster_id)
        self._learn(found)
        self.context.asks_sasl, self.is_controller = found.asks_sasl, found.is_controller
        self.asking.say_kind(found, self.redirected is not None)
        await self.bind()
        ahead = await self.ports.open_ahead(whole_range=self.context.asks_sasl)
        possible = connections_possible(ahead + max(0, len(self.topology.nodes) - SPARE_LISTENERS))
        self.shared.room.bound(possible, self.settings.name, self.log)

    def _learn(self, found: Found) -> None:
        say_other_cluster(self.topology.cluster_id, found.cluster_id, self.settings.name, self.log)
        self.readiness.probed = found.api_versions is not None
        self.topology.cluster_id = found.cluster_id or self.topology.cluster_id
        if self.capturing is not None and self.topology.cluster_id is not None:
            self.capturing.keeper.cluster(self.settings.name, self.topology.cluster_id)
        self.topology.learn_all(found.nodes)
        say_changes(self.topology, self.settings.name, self.log)

    async def _dial_new(self) -> None:
        asking = self.asking
        ask, greet = (self.watch.dial,) * 2 if self.context.asks_sasl else (asking.ask, asking.greet)
        await self._at_most_for_a_while(self.watch.meet(ask, greet))

    async def _at_most_for_a_while(self, work: Coroutine[Any, Any, None]) -> None:
        """Where many nodes are silent it goes on meanwhile."""
        await asyncio.wait([self.tasks.run(work)], timeout=REFRESH_S)

    # State for metrics and the admin API.

    @property
    def bootstrap_port(self) -> int:
        return self.ports.bootstrap_port

    def listening(self) -> Address:
        """The address of the bootstrap port, as clients are told it."""
        return self.ports.bootstrap_address()

    def state(self) -> ClusterState:
        host = None if self.redirected is not None else self.listening().host
        return ClusterState(
            self.settings.name,
            tuple(map(str, self.settings.bootstrap)),
            str(self.listening()),
            self.topology.cluster_id,
            self.readiness.ready,
            self.readiness.reason,
            self.node_states.of(host),
            self.is_controller and all(key.kind == "controller" for key in self.topology.nodes),
            any(key.kind == "broker" for key in self.topology.nodes),
            self.context.asks_sasl if self.announced.is_set() else None,
            self.tls is not None,
            self.redirected is not None,
            self.let_in,
            self.ports.closed,
            self.settings.names is not None,
            self.settings.listen_sasl is not None,
        )

    def in_flight(self) -> Counter[tuple[str, str]]:
        waiting: Counter[tuple[str, str]] = Counter()
        for link in self.links:
            if link.broker is not None:
                waiting[self.settings.name, broker_label(link.target)] += link.in_flight()
        return waiting

    async def stop(self) -> None:
        self.ports.close()
        await self.doors.stop()
        for link in list(self.links):
            link.finish("klamm stopped", now=True)
        await self.tasks.stop()
        if self.memory is not None:
            self.memory.keep_now(self.topology)
