"""The ports of one cluster, and the node that each leads to."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network

from klamm.proxy import config
from klamm.proxy.cluster.own_requests.dialling import ANY_ADDRESS
from klamm.proxy.cluster.own_requests.discovery import what_to_listen_on, why_not_bound
from klamm.proxy.config_types import Address
from klamm.proxy.edge.accepting.acceptor import Acceptor, Network
from klamm.proxy.edge.accepting.entrance import Entrance, Lead
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.inherited import LISTENING
from klamm.proxy.edge.accepting.listener import Enter, Listener, bound
from klamm.proxy.edge.accepting.pace import Pace
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.sockets import Arrival
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import Node, NodeKey, Topology

BACKLOG = 1024
DRAINS = "klamm drains"
TURN = 20  # listeners opened before the loop may do something else
SHOWN = 50  # nodes without a listener, one by one in the log
MOST_AHEAD = 256  # ports of a range that are opened before their nodes are known
Accept = Callable[[NodeKey | None, Arrival | None], asyncio.Protocol]
Refused = Callable[[NodeKey | None, tuple[str, int], str, str], None]


@dataclass(slots=True)
class Port:
    """A listening port. `target`: the node it leads to; None: the broker that answers first."""

    target: NodeKey | None
    server: asyncio.Server | Listener | None = None


class Ports:
    """`accept` makes the protocol of a client from its port's target, and from the addresses that it came
    from and to, where the listener knows better ones than its socket. `tls`: the settings where clients speak
    TLS; `refused` gets those that fail: the port's target, their address, the kind of problem and why.
    `find` gives the original destinations of redirected connections: then only the first port is opened.
    `pace`: how fast they are accepted. `own`: every address that klamm listens on is added to it.
    `unbound`: why a node has no port.
    """

    def __init__(
        self,
        settings: config.Cluster,
        topology: Topology,
        log: EventLog,
        accept: Accept,
        own: set[tuple[str, int]],
        tls: FollowedTls | None,
        refused: Refused,
        find: Lead | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.settings, self.topology, self.log = settings, topology, log
        self.accept, self.own, self.tls, self.refused, self.find = accept, own, tls, refused, find
        self.pace = pace or Pace(0)
        trusted = settings.proxy_protocol
        self.hand_over: Callable[[Port], Enter] | None = None  # to workers: the way in is theirs
        self.balancers: Sequence[Network] = (
            [] if trusted is None else [ip_network(each) for each in trusted.from_]
        )
        self.by_port: dict[int, Port] = {}
        self.bootstrap_port = settings.listen.first
        self.closed = False
        self.unbound: dict[NodeKey, str] = {}
        self.revision = 0  # goes up when `unbound` may say something else

    async def lead(self, port: int, target: NodeKey | None) -> int:
        """Lead clients of this port to `target` from now on, and open it if it is not open; port 0 takes a
        free one. Gives the port. Raises OSError.
        """
        if port in self.by_port:
            self.by_port[port].target = target
            return port
        if self.closed:
            raise OSError(errno.ESHUTDOWN, DRAINS)
        opened = Port(target)
        opened.server = server = await self._listen(port, opened)
        self.own.update(sock.getsockname()[:2] for sock in server.sockets)
        port = server.sockets[0].getsockname()[1]
        self.by_port[port] = opened
        return port

    async def _listen(self, port: int, opened: Port) -> asyncio.Server | Listener:
        sockets, loop = await bound(self.settings.listen.host, port, BACKLOG), asyncio.get_running_loop()
        if self.hand_over is not None:
            return Listener(sockets, self.hand_over(opened), self.pace)
        plain = self.tls is None and self.settings.listen_sasl is None and not self.pace.per_s
        if not plain or self.balancers or self.find is not None or len(sockets) > 1:
            return Listener(sockets, self.way_in(opened), self.pace)
        return await loop.create_server(
            lambda: self.accept(opened.target, None), sock=sockets[0], backlog=BACKLOG
        )

    def keep_pace(self) -> None:
        """Where the pace is limited from now on, have ports accept their connections themselves."""
        for port in self.by_port.values() if self.pace.per_s and not self.closed else ():
            if port.server is not None and not isinstance(port.server, Listener):
                server = port.server
                listening = [socket.socket(fileno=os.dup(each.fileno())) for each in server.sockets]
                server.close()
                LISTENING.update(listening)
                port.server = Listener(listening, self.way_in(port), self.pace)

    def way_in(self, port: Port) -> Acceptor:
        """For the connections of a port."""
        return Entrance(
            make=lambda came: self.accept(port.target, came),
            refused=partial(self.refused, port.target),
            tls=self.tls,
            balancers=self.balancers,
            lead=self.find,
        )

    def opened_by_leader(self, bootstrap_port: int, let_in: bool) -> None:
        """The lead has this bootstrap port open. `let_in`: clients may come."""
        self.bootstrap_port = bootstrap_port

    async def open_bootstrap(self) -> None:
        """Open the bootstrap port, if it is not open. Raises OSError whose text says what to change."""
        listen = self.settings.listen
        try:
            self.bootstrap_port = await self.lead(self.bootstrap_port, None)
        except OSError as error:
            why = why_not_bound(error)
            where = f"cannot listen on {Address(listen.host, listen.first)}: {why}"
            raise OSError(
                f"{where}; choose {what_to_listen_on(why)} with --listen HOST:FIRST-LAST"
            ) from error

    def expect(self) -> None:
        """Clients will be let in, once the cluster is found."""

    def bootstrap_address(self) -> Address:
        """For the clients."""
        host = self.settings.advertise or self.settings.listen.host
        return Address(ANY_ADDRESS.get(host, host), self.bootstrap_port)

    def told(self) -> Sequence[tuple[str, str]]:
        """Settings and the hosts in them that clients are told."""
        return [("advertise", self.settings.advertise)] if self.settings.advertise else []

    def held(self) -> Iterable[int]:
        """The ports that are free if these are closed."""
        return self.by_port

    def asked(self, link: Link) -> str | None:
        """The part of a node's address that a client came to, for people; None: it came to bootstrap."""
        port = link.local_address[1]
        return None if port == self.bootstrap_port else f"port {port}"

    def node_asked(self, link: Link) -> NodeKey | None:
        """The node whose address a client came to; None: of no node that is known."""
        port = self.by_port.get(link.local_address[1])
        return None if port is None else port.target

    async def open_for_all(self, nodes: Sequence[Node]) -> None:
        """Open a port for each node, or log why that fails; one line counts the failures after `SHOWN`."""
        failed, full = 0, ""
        if self.find is not None:
            return
        for number, node in enumerate(nodes):
            if full and not self._has_own(node):
                self._not_open(node, full, failed < SHOWN)  # to look for one takes a look at all nodes
                failed += 1
            else:
                try:
                    failed += not await self.open_for(node, failed < SHOWN)
                except LookupError as no_port:
                    full = str(no_port)
                    self._not_open(node, full, failed < SHOWN)
                    failed += 1
            if number % TURN == TURN - 1:
                await asyncio.sleep(0)
        if failed > SHOWN:
            more = f"{failed - SHOWN} more nodes have no listener; choose a larger range with --listen"
            self.log.event("unbindable", more, "error", cluster=self.settings.name, per="more")

    def _has_own(self, node: Node) -> bool:
        """Is there a port that it has had, or that the settings give it?"""
        pinned = node.key.kind == "broker" and node.key.node_id in self.topology.pinned
        return pinned or node.key in self.topology.remembered

    async def open_for(self, node: Node, tell: bool = True) -> bool:
        """Open a port for a node, or log why that fails. True if it is open. Raises LookupError if no port is
        left.
        """
        self.revision += 1
        topology = self.topology
        port = topology.port_for(node.key)
        try:
            listening = await self.lead(port, node.key)
        except OSError as error:
            self._not_open(node, f"port {port}: {why_not_bound(error)}", tell)
            return False
        topology.bound(node, listening)
        self.unbound.pop(node.key, None)
        if not topology.is_stable(node):
            message = (
                f"{node.key.kind} {node.key.node_id} listens on {node.listen_port}, which may differ after "
                "a restart: give it a port under `ports` in klamm.yaml"
            )
            self.log.event("unstable_port", message, "warning", cluster=self.settings.name, per=node.key)
        return True

    def _not_open(self, node: Node, why: str, tell: bool) -> None:
        named = f"{node.key.kind} {node.key.node_id} has no listener: {why}"
        failure = f"{named}; choose {what_to_listen_on(why)} with --listen, or under `ports` in klamm.yaml"
        self.topology.bound(node, None, failure)
        self.unbound[node.key] = why
        self.revision += 1
        if tell:
            self.log.event("unbindable", failure, "error", cluster=self.settings.name, per=node.key)

    async def open_ahead(self, whole_range: bool) -> int:
        """Open ports of nodes that no response has named yet, because clients of the run before may come to
        them. Gives their number. `whole_range`: every port of the range, if the settings give its end.
        """
        self.revision += 1
        if self.find is not None:
            return 0
        listen = self.settings.listen
        whole_range = whole_range and listen.last is not None and len(listen.ports) <= MOST_AHEAD
        ahead, failed = self.topology.ahead(whole_range), dict[str, list[int]]()
        for number, (port, key) in enumerate(sorted(ahead.items())):
            if number % TURN == TURN - 1:
                await asyncio.sleep(0)
            try:
                await self.lead(port, key)
            except OSError as error:
                failed.setdefault(why_not_bound(error), []).append(port)
                if key is not None:
                    self.unbound[key] = f"port {port}: {why_not_bound(error)}"
            else:
                if key is not None:
                    self.unbound.pop(key, None)
        self.revision += 1
        for why, ports in failed.items():
            message = f"not open before their brokers are known: ports {', '.join(map(str, ports))}: {why}"
            self.log.event("unbindable", message, "warning", cluster=self.settings.name, per=why)
        return len(ahead)

    def close(self) -> None:
        """Take no new connections, and open no port any more."""
        self.closed = True
        for port in self.by_port.values():
            if port.server is not None:
                port.server.close()
