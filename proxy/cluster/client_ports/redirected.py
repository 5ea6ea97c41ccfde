"""Clients that keep the brokers' addresses: the kernel redirects their connections to klamm, and klamm leads
each to its original destination.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address, ip_network

from klamm.proxy import config
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_sasl.sasl import OwnSession
from klamm.proxy.config_types import Address
from klamm.proxy.edge.accepting.original_destination import BadDestination, original_destination
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.sockets import Arrival
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import NodeKey, Topology, broker_label

RESOLVE_S = 2.0  # a connection to an unknown address waits at most so long for the names of nodes
DIRECT = (
    "the client connected to klamm's own port: with `transparent` clients connect to the brokers, and a "
    "redirect leads them here (docs/sidecar.md)"
)
UNTRACKED = (
    "the kernel does not know where the connection was for ({}): redirect it in klamm's own network "
    "namespace, with iptables -t nat ... -j REDIRECT (docs/sidecar.md)"
)
LOOP = (
    "a connection of klamm's own to {} was redirected to klamm: leave klamm's out of the redirect, as with "
    "iptables -m owner ! --uid-owner USER (docs/sidecar.md)"
)
OPAQUE = (
    "clients speak TLS to {}, and klamm has no certificate for it: these bytes pass unread, and are counted; "
    "with --listen-tls-cert klamm reads them"
)


class Redirected:
    """`own` has the addresses that klamm listens on. `dialled`: both ends of klamm's own connections."""

    def __init__(
        self,
        settings: config.Transparent,
        cluster: str,
        bootstrap: Sequence[Address],
        topology: Topology,
        dialler: Dialler,
        log: EventLog,
    ) -> None:
        self.cluster, self.bootstrap, self.topology = cluster, bootstrap, topology
        self.dialler, self.log = dialler, log
        self.networks = [ip_network(each) for each in settings.to]
        self.ports = frozenset(settings.ports)
        self.dialled: dict[Link, tuple[tuple[str, int], tuple[str, int]]] = {}
        self.own_ends: set[tuple[tuple[str, int], tuple[str, int]]] = set()
        self.named: dict[
            tuple[str, int], tuple[Address, NodeKey | None]
        ] = {}  # by the addresses of their hosts
        self.seen = -1  # the topology's revision then
        self.resolving: asyncio.Task[None] | None = None
        self.opaque: set[str] = set()  # brokers whose clients speak TLS past klamm

    # The way in: edge.entrance.Lead.

    async def lead(self, sock: socket.socket, came: Arrival) -> Arrival:
        """The arrival with its original destination as the address that it came to. Raises BadDestination."""
        try:
            there = original_destination(sock)
        except OSError as error:
            raise BadDestination(UNTRACKED.format(error.strerror)) from error
        if there == came.local or there in self.dialler.own:
            raise BadDestination(DIRECT)
        if (came.client, there) in self.own_ends:
            raise BadDestination(LOOP.format(Address(*there)))
        if self.networks and not any(ip_address(there[0]) in network for network in self.networks):
            raise BadDestination(f"{Address(*there)} is in no network of transparent.to")
        if self.ports and there[1] not in self.ports:
            raise BadDestination(f"{Address(*there)} has no port of transparent.ports")
        if self.target(there) is None and self.seen != self.topology.revision:
            await self.resolve()
        return came._replace(local=there)

    def target(self, destination: tuple[str, int]) -> NodeKey | None:
        """The node at an address; None: no response has named one there."""
        return self.named[destination][1] if destination in self.named else None

    def say_opaque(self, link: Link) -> None:
        """Log once for each broker that its clients' bytes are not read."""
        label = broker_label(link.target)
        if label not in self.opaque:
            self.opaque.add(label)
            message = OPAQUE.format(Address(*link.local_address))
            self.log.event("opaque", message, "warning", cluster=self.cluster, broker=label, per=label)

    # The way to the broker.

    async def dial(
        self, link: Link, make: Callable[[], asyncio.Protocol], expires: Callable[[OwnSession], None]
    ) -> asyncio.Transport:
        """Connect to the original destination. Raises OSError."""
        there = link.local_address
        known = self.named.get(there)
        advertised = Address(*there) if known is None else known[0]
        connected = partial(self._connected, link)
        return await self.dialler.dial(advertised, make, expires, connected, link.opaque)

    async def _connected(self, link: Link) -> socket.socket:
        """A connection whose ends are noted before a byte goes over it: if it comes back to klamm, klamm
        knows it by them. Raises OSError.
        """
        host, port = there = link.local_address
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(sock, (host, port))
            name = sock.getsockname()
        except BaseException:
            sock.close()
            raise
        self.dialled[link] = ends = ((str(name[0]), int(name[1])), there)
        self.own_ends.add(ends)
        return sock

    def closed(self, link: Link) -> None:
        """The connection has ended."""
        ends = self.dialled.pop(link, None)
        if ends is not None:
            self.own_ends.discard(ends)

    # The nodes by the addresses of their hosts.

    async def resolve(self) -> None:
        """Look up the hosts of all nodes; return when that is done, or after RESOLVE_S."""
        if self.resolving is None or self.resolving.done():
            self.resolving = asyncio.create_task(self._resolve())
        await asyncio.wait([self.resolving], timeout=RESOLVE_S)

    async def _resolve(self) -> None:
        revision, known = self.topology.revision, list(self._known())
        loop = asyncio.get_running_loop()
        hosts = list(dict.fromkeys(address.host for address, _ in known))
        lookups = (loop.getaddrinfo(host, None, type=socket.SOCK_STREAM) for host in hosts)
        found = await asyncio.gather(*lookups, return_exceptions=True)
        at = {
            host: [] if isinstance(infos, BaseException) else [str(info[4][0]) for info in infos]
            for host, infos in zip(hosts, found, strict=True)
        }
        self.named = {(ip, address.port): (address, key) for address, key in known for ip in at[address.host]}
        self.seen = revision

    def _known(self) -> Iterator[tuple[Address, NodeKey | None]]:
        """Addresses as they are advertised; where two are the same, the last one counts."""
        for address in self.bootstrap:
            yield address, None
        for node in sorted(self.topology.nodes.values(), key=lambda node: node.key, reverse=True):
            yield Address(node.host, node.port), node.key


def redirected_by(
    settings: config.Cluster, topology: Topology, dialler: Dialler, log: EventLog
) -> Redirected | None:
    """None: the clients of this cluster connect to klamm."""
    to = settings.transparent
    return None if to is None else Redirected(to, settings.name, settings.bootstrap, topology, dialler, log)
