"""The one port of a cluster whose clients tell nodes apart by host names (`clusters[].names`)."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Sequence

from klamm.proxy import config
from klamm.proxy.cluster.client_ports.ports import DRAINS, Accept, Port, Ports
from klamm.proxy.cluster.client_ports.shared import Shared
from klamm.proxy.cluster.client_ports.shared_ports import SharedPort, SharedPorts
from klamm.proxy.cluster.problems import Problems
from klamm.proxy.config_types import Address
from klamm.proxy.edge.accepting.acceptor import Acceptor
from klamm.proxy.edge.accepting.entrance import Entrance, Lead
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.pace import Pace
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.sockets import Arrival
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.node_names import NodeNames
from klamm.proxy.session.rewriting.topology import Node, NodeKey, Topology


class NamedPorts(Ports):
    """Implements shared_ports.Named. `shared` has the ports of all clusters."""

    def __init__(
        self,
        settings: config.Cluster,
        topology: Topology,
        log: EventLog,
        accept: Accept,
        own: set[tuple[str, int]],
        tls: FollowedTls | None,
        problems: Problems,
        shared: SharedPorts,
        pace: Pace,
    ) -> None:
        super().__init__(settings, topology, log, accept, own, tls, problems.refused, None, pace)
        self.problems, self.shared = problems, shared
        self.address = Address(settings.listen.host, settings.listen.first)
        self.joined: SharedPort | None = None
        self.is_open = False  # are clients let in?
        self.entering: set[asyncio.Task[object]] = set()
        self.names = self.take_names()

    @property
    def cluster(self) -> str:
        return self.settings.name

    def take_names(self) -> NodeNames:
        """Use those of the settings from now on."""
        names = self.settings.names
        assert names is not None
        self.names = NodeNames(names.bootstrap, names.nodes, names.port or self.bootstrap_port)
        self.topology.share_port(self.names.port, self.names.host)
        return self.names

    def expect(self) -> None:
        if self.joined is None and not self.closed:
            self.joined = self.shared.join(self.address, self)

    async def lead(self, port: int, target: NodeKey | None) -> int:
        self.expect()
        if self.joined is None or self.closed:
            raise OSError(errno.ESHUTDOWN, DRAINS)
        listener = await self.joined.open(self)
        if self.closed:
            raise OSError(errno.ESHUTDOWN, DRAINS)
        self.own.update(sock.getsockname()[:2] for sock in listener.sockets)
        self.is_open = True
        return int(listener.sockets[0].getsockname()[1])

    async def open_bootstrap(self) -> None:
        await super().open_bootstrap()
        self.take_names()  # with `listen: HOST:0` the port is known now

    async def open_for_all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.topology.bound(node, self.names.port)

    async def open_ahead(self, whole_range: bool) -> int:
        return 0

    def bootstrap_address(self) -> Address:
        return Address(self.names.bootstrap, self.names.port)

    def told(self) -> Sequence[tuple[str, str]]:
        brokers = [self.names.host(key) for key in sorted(self.topology.nodes) if key.kind == "broker"]
        return [("names.bootstrap", self.names.bootstrap), *(("names.nodes", each) for each in brokers[:1])]

    def held(self) -> Iterable[int]:
        return [self.bootstrap_port] if self.is_open else []

    def asked(self, link: Link) -> str | None:
        return None if link.named is None else self.names.host(link.named)

    def node_asked(self, link: Link) -> NodeKey | None:
        return link.named

    def pattern(self) -> str:
        return f"{self.names.bootstrap}, {self.names.nodes}"

    def entrance(self, name: str, arrival: Arrival) -> tuple[Entrance, Arrival] | None:
        key = self.names.node(name)
        if key is None and name != self.names.bootstrap:
            return None
        known = key in self.topology.nodes or key in self.topology.remembered
        target = key if known else None  # a made-up id is not a label in metrics
        task = asyncio.current_task()
        if task is not None:
            self.entering.add(task)
            task.add_done_callback(self.entering.discard)
        entrance = Entrance(
            make=lambda came: self.accept(target, came),
            refused=lambda *problem: self.refused(target, *problem),
            tls=self.tls,
        )
        return entrance, arrival._replace(named=key)

    def way_in(self, port: Port) -> Acceptor:
        assert self.joined is not None
        return self.joined.way_in(self)

    def opened_by_leader(self, bootstrap_port: int, let_in: bool) -> None:
        self.expect()
        self.is_open = let_in
        if self.bootstrap_port != bootstrap_port:
            self.bootstrap_port = bootstrap_port
            self.take_names()

    def close(self) -> None:
        if self.joined is not None and not self.closed:
            self.shared.leave(self.joined, self)
            for task in self.entering:
                task.cancel()
        super().close()


def ports_of(
    settings: config.Cluster,
    topology: Topology,
    log: EventLog,
    accept: Accept,
    own: set[tuple[str, int]],
    tls: FollowedTls | None,
    problems: Problems,
    find: Lead | None,
    shared: Shared,
) -> Ports:
    """With a port for each node, or one port for all, as the settings say."""
    if settings.names is not None:
        return NamedPorts(settings, topology, log, accept, own, tls, problems, shared.ports, shared.pace)
    return Ports(settings, topology, log, accept, own, tls, problems.refused, find, shared.pace)
