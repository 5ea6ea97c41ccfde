"""The ports of one cluster, and the node that each leads to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from klamm.proxy import config
from klamm.proxy.cluster.discovery import why_not_bound
from klamm.proxy.config import Address
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.topology import Node, NodeKey, Topology

BACKLOG = 1024
EVERY_IPV6 = "::"
MOST_AHEAD = 256  # ports of a range that are opened before their nodes are known
Accept = Callable[[NodeKey | None], asyncio.Protocol]


@dataclass(slots=True)
class Port:
    """`target` None: whichever broker answers first."""

    target: NodeKey | None
    server: asyncio.Server | None = None


class Ports:
    """`accept` makes the protocol of a client from its port's target; `own` gets every address.
    `unbound`: why a node has no port.
    """

    def __init__(
        self,
        settings: config.Cluster,
        topology: Topology,
        log: EventLog,
        accept: Accept,
        own: set[tuple[str, int]],
    ) -> None:
        self.settings, self.topology, self.log = settings, topology, log
        self.accept, self.own = accept, own
        self.by_port: dict[int, Port] = {}
        self.unbound: dict[NodeKey, str] = {}

    async def lead(self, port: int, target: NodeKey | None) -> int:
        """From now on clients that come to this port are led there. A port that is open already stays open;
        port 0 takes a free one. Gives the port. Raises OSError.
        """
        if port in self.by_port:
            self.by_port[port].target = target
            return port
        opened = Port(target)
        host, loop = self.settings.listen.host, asyncio.get_running_loop()
        where: dict[str, Any] = {"host": host, "port": port, "reuse_address": True}
        if host == EVERY_IPV6 and socket.has_dualstack_ipv6():  # asyncio's own socket would be for IPv6 alone
            both = socket.create_server((host, port), family=socket.AF_INET6, dualstack_ipv6=True)
            where = {"sock": both}
        server = await loop.create_server(lambda: self.accept(opened.target), backlog=BACKLOG, **where)
        opened.server = server
        self.own.update(sock.getsockname()[:2] for sock in server.sockets)
        port = server.sockets[0].getsockname()[1]
        self.by_port[port] = opened
        return port

    async def open_bootstrap(self) -> int:
        """Let clients in; the port. Raises OSError with what to change."""
        listen = self.settings.listen
        try:
            return await self.lead(listen.first, None)
        except OSError as error:
            where = f"cannot listen on {Address(listen.host, listen.first)}: {why_not_bound(error)}"
            raise OSError(f"{where}; choose other ports with --listen HOST:FIRST-LAST") from error

    async def open_for(self, node: Node) -> None:
        """A port for a node, or a line in the log."""
        port, topology = 0, self.topology
        try:
            port = topology.port_for(node.key)
            listening = await self.lead(port, node.key)
        except (OSError, LookupError) as error:
            why = f"port {port}: {why_not_bound(error)}" if isinstance(error, OSError) else str(error)
            named = f"{node.key.kind} {node.key.node_id} has no listener: {why}"
            failure = f"{named}; choose other ports with --listen, or under `ports` in klamm.yaml"
            topology.bound(node, None, failure)
            self.unbound[node.key] = why
            self.log.event("unbindable", failure, "error", cluster=self.settings.name, per=node.key)
            return
        topology.bound(node, listening)
        self.unbound.pop(node.key, None)
        if not topology.is_stable(node):
            message = (
                f"{node.key.kind} {node.key.node_id} listens on {node.listen_port}, which may differ after "
                "a restart: give it a port under `ports` in klamm.yaml"
            )
            self.log.event("unstable_port", message, "warning", cluster=self.settings.name, per=node.key)

    async def open_ahead(self, whole_range: bool) -> int:
        """Ports of nodes that nobody has named yet, where clients of the run before may come first; how many.
        `whole_range`: all of the range too, where the configuration says where it ends.
        """
        listen = self.settings.listen
        whole_range = whole_range and listen.last is not None and len(listen.ports) <= MOST_AHEAD
        ahead, failed = self.topology.ahead(whole_range), dict[str, list[int]]()
        for port, key in sorted(ahead.items()):
            try:
                await self.lead(port, key)
            except OSError as error:
                failed.setdefault(why_not_bound(error), []).append(port)
                if key is not None:
                    self.unbound[key] = f"port {port}: {why_not_bound(error)}"
            else:
                if key is not None:
                    self.unbound.pop(key, None)
        for why, ports in failed.items():
            message = f"not open before their brokers are known: ports {', '.join(map(str, ports))}: {why}"
            self.log.event("unbindable", message, "warning", cluster=self.settings.name, per=why)
        return len(ahead)

    def close(self) -> None:
        for port in self.by_port.values():
            if port.server is not None:
                port.server.close()
