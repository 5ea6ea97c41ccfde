"""One proxied cluster at the edge: its listeners, its links, and what klamm asks of it."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from klamm.proxy import config
from klamm.proxy.config import Address
from klamm.proxy.connection import Ground
from klamm.proxy.discovery import Found, Unanswered, discover, why_unreachable
from klamm.proxy.log import EventLog
from klamm.proxy.session import Session
from klamm.proxy.snapshot import ClusterState, NodeState
from klamm.proxy.stats import Stats
from klamm.proxy.topology import Node, NodeKey, Topology
from klamm.proxy.transport import ClientSide, Link, tls_context
from klamm.rules.plan import Planner

BACKLOG = 1024
REFRESH_S = 30.0  # between two looks at the cluster
RETRY_FIRST_S, RETRY_LAST_S = 0.5, 15.0  # while the bootstrap servers do not answer
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Proxied:
    """Implements transport.Host. `announce` is called once, when clients may come."""

    def __init__(
        self, settings: config.Cluster, limits: config.Limits, planner: Planner, stats: Stats, log: EventLog
    ) -> None:
        self.settings, self.stats, self.log = settings, stats, log
        listen = settings.listen
        ports = listen.ports
        last = ports[-1] if ports else 0
        self.topology = Topology(listen.first, last, dict(settings.ports))
        self.ground = Ground(
            settings.name,
            planner,
            self.topology,
            stats,
            settings.allow_unknown_apis,
            limits.frame_bytes,
            limits.held_frame_bytes,
        )
        tls = settings.tls
        self.tls = None if tls is None else tls_context(tls.ca, tls.cert, tls.key, tls.verify)
        self.links: set[Link] = set()
        self.servers: dict[NodeKey | None, asyncio.Server] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.binding = asyncio.Lock()
        self.bootstrap_port = listen.first
        self.ready = False
        self.asks_sasl = False
        self.had_client = False
        self.reason = f"bootstrap servers {', '.join(map(str, settings.bootstrap))} have not answered yet"
        self.announced = asyncio.Event()

    # What a link asks of its cluster.

    def opened(self, link: Link) -> None:
        self.had_client = True
        self.links.add(link)
        self.stats.connections[self.settings.name, broker_label(link.target)] += 1
        self.stats.opened[self.settings.name, broker_label(link.target)] += 1

    def closed(self, link: Link, reason: str) -> None:
        if link in self.links:
            self.links.remove(link)
            self.stats.connections[self.settings.name, broker_label(link.target)] -= 1
            self.stats.closed[self.settings.name, reason] += 1

    def session(self, link: Link) -> Session:
        return Session(
            self.ground, broker_label(link.target), self.settings.advertise or link.local_address[0]
        )

    async def connect(self, link: Link, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """To the broker of the link's listener, or to the first of all known that answers. Raises OSError."""
        if link.target is not None:
            node = self.topology.nodes[link.target]
            return await self._dial(Address(node.host, node.port), make)
        failures: list[str] = []
        for address in self._candidates():
            try:
                return await self._dial(address, make)
            except OSError as error:
                failures.append(str(error))
        raise OSError("; ".join(failures) or "no broker is known")

    async def bind(self) -> None:
        """A listener for every node that has none."""
        async with self.binding:
            for node in self.topology.unbound():
                await self._bind(node)
        self._say_changes()

    def say(self, link: Link, kind: str, api: str, message: str) -> None:
        fields: dict[str, Any] = {"cluster": self.settings.name, "broker": broker_label(link.target)}
        fields["connection"] = str(Address(*link.client_address))
        if api:
            fields["api"] = api
        self.log.event(kind, message, "warning", **fields)

    def exchange(self, link: Link, fields: dict[str, Any]) -> None:
        fields["cluster"], fields["broker"] = self.settings.name, broker_label(link.target)
        fields["connection"] = str(Address(*link.client_address))
        self.log.exchange(fields)

    def failed(self, link: Link, error: Exception) -> None:
        self.stats.problems[self.settings.name, "", "defect"] += 1
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

    # Listeners.

    async def _bind(self, node: Node) -> None:
        try:
            port = self.topology.port_for(node.key)
            server = await self._listen(node.key, port)
        except (OSError, LookupError) as error:
            named = f"{node.key.kind} {node.key.node_id} has no listener: {error}"
            self.topology.bound(
                node, None, f"{named}; widen --listen, or give it a port under `ports` in klamm.yaml"
            )
            self.log.event(
                "unbindable", node.failure or "", "error", cluster=self.settings.name, per=node.key
            )
            return
        self.topology.bound(node, server.sockets[0].getsockname()[1])
        if not self.topology.is_stable(node):
            message = (
                f"{node.key.kind} {node.key.node_id} listens on {node.listen_port}, which may differ after a restart: "
                f"give it a port under `ports` in klamm.yaml"
            )
            self.log.event("unstable_port", message, "warning", cluster=self.settings.name, per=node.key)

    async def _listen(self, key: NodeKey | None, port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        host = self.settings.listen.host
        server = await loop.create_server(
            lambda: ClientSide(self, key), host, port, backlog=BACKLOG, reuse_address=True
        )
        self.servers[key] = server
        return server

    async def _open(self) -> None:
        """Let clients in. Raises OSError."""
        server = await self._listen(None, self.settings.listen.first)
        self.bootstrap_port = server.sockets[0].getsockname()[1]
        self.ready, self.reason = True, ""
        self.announced.set()

    # The other end.

    def reachable(self, address: Address) -> Address:
        """Where klamm reaches what a broker advertises."""
        return self.settings.map.get(address, address)

    async def _dial(self, advertised: Address, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        loop, timeout_s = asyncio.get_running_loop(), self.settings.connect_timeout_s
        host, port = self.reachable(advertised)
        try:
            async with asyncio.timeout(timeout_s):
                transport, _ = await loop.create_connection(
                    make,
                    host,
                    port,
                    ssl=self.tls,
                    server_hostname=self._server_name(host) if self.tls else None,
                )
        except (TimeoutError, OSError) as error:
            raise OSError(why_unreachable(Address(host, port), error, timeout_s)) from error
        return transport

    def _server_name(self, host: str) -> str:
        named = self.settings.tls.server_name if self.settings.tls else None
        return named or host

    def _candidates(self) -> list[Address]:
        """Where a bootstrap connection may lead: what the configuration names, then every broker known."""
        known = [
            Address(node.host, node.port)
            for node in self.topology.nodes.values()
            if node.key.kind == "broker"
        ]
        return list(dict.fromkeys([*self.settings.bootstrap, *known]))

    async def _ask(self, address: Address) -> Found:
        host, port = self.reachable(address)
        name = self.settings.tls.server_name if self.settings.tls else None
        return await discover(Address(host, port), self.settings.connect_timeout_s, self.tls, name)

    async def follow(self) -> None:
        """Find the cluster, let clients in, and keep looking at it for as long as klamm runs."""
        await self._find()
        await self._open()
        await self._dial_all()
        while True:
            await asyncio.sleep(REFRESH_S)
            if not self.asks_sasl:
                with contextlib.suppress(OSError):
                    self._learn(await self._ask_any())
                    await self.bind()

    async def _find(self) -> None:
        wait_s, said = RETRY_FIRST_S, ""
        while True:
            try:
                found = await self._ask_any()
                break
            except OSError as error:
                self.reason = str(error)
                if self.reason != said:
                    said = self.reason
                    self.log.event(
                        "unreachable", f"{said}; trying again", "error", cluster=self.settings.name, per=said
                    )
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, RETRY_LAST_S)
        self._learn(found)
        self.asks_sasl = found.asks_sasl
        if found.asks_sasl:
            message = "the cluster wants SASL: it passes through, and klamm learns the brokers from what clients are told"
            hosts = "mechanisms that are bound to the broker's host (GSSAPI, AWS_MSK_IAM) fail behind another name"
            self.log.event("sasl", f"{message}; {hosts}", "warning", cluster=self.settings.name)
        await self.bind()

    async def _ask_any(self) -> Found:
        failures: list[str] = []
        for address in self._candidates():
            try:
                return await self._ask(address)
            except OSError as error:
                failures.append(str(error))
        raise Unanswered("no bootstrap server answers: " + "; ".join(failures))

    def _learn(self, found: Found) -> None:
        if found.cluster_id is not None and self.topology.cluster_id not in (None, found.cluster_id):
            message = f"the bootstrap servers lead to cluster {found.cluster_id}; before it was {self.topology.cluster_id}"
            self.log.event("cluster_changed", message, "error", cluster=self.settings.name)
        self.topology.cluster_id = found.cluster_id or self.topology.cluster_id
        for key, address in found.nodes.items():
            self.topology.learn(key.kind, key.node_id, *address)
        self._say_changes()

    def _say_changes(self) -> None:
        changes, self.topology.changes = self.topology.changes, []
        for change in changes:
            self.log.event("topology", change, cluster=self.settings.name)

    async def _dial_all(self) -> None:
        """What would fail later for a client is said now."""
        for node in list(self.topology.nodes.values()):
            advertised = Address(node.host, node.port)
            if node.key.kind == "controller":
                continue  # often on a network of their own, and asked for by few
            try:
                if self.asks_sasl:
                    (await self._dial(advertised, asyncio.Protocol)).close()
                else:
                    await self._ask(advertised)
            except OSError as error:
                said = f"broker {node.key.node_id}, advertised as {advertised}, cannot be used: {error}"
                if self.reachable(advertised) == advertised and "--" not in str(error):
                    said += f"; if klamm reaches it elsewhere, say --map {advertised}=HOST:PORT"
                self.log.event(
                    "broker_unreachable", said, "warning", cluster=self.settings.name, per=node.key
                )

    # What it tells.

    def listening(self) -> Address:
        """Where clients bootstrap."""
        host = self.settings.advertise or self.settings.listen.host
        return Address(ANY_ADDRESS.get(host, host), self.bootstrap_port)

    def state(self) -> ClusterState:
        nodes = tuple(
            NodeState(
                node.key.kind,
                node.key.node_id,
                str(Address(node.host, node.port)),
                str(Address(self.listening().host, node.listen_port or 0)),
            )
            for node in sorted(self.topology.nodes.values(), key=lambda node: node.key)
        )
        return ClusterState(
            self.settings.name,
            tuple(map(str, self.settings.bootstrap)),
            str(self.listening()),
            self.topology.cluster_id,
            self.ready,
            self.reason,
            nodes,
        )

    def in_flight(self) -> Counter[tuple[str, str]]:
        waiting: Counter[tuple[str, str]] = Counter()
        for link in self.links:
            if link.broker is not None:
                waiting[self.settings.name, broker_label(link.target)] += link.session.in_flight()
        return waiting

    async def stop(self) -> None:
        for server in self.servers.values():
            server.close()
        for link in list(self.links):
            link.shut()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def broker_label(target: NodeKey | None) -> str:
    return "bootstrap" if target is None else str(target)


def tls_error(settings: config.Cluster, error: OSError | ssl.SSLError) -> str:
    return f"cluster {settings.name}: the TLS files cannot be used: {error}"
