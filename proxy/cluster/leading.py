"""Leads the connections of clients to their brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from klamm.proxy import config
from klamm.proxy.cluster.client_ports.ports import Ports
from klamm.proxy.cluster.client_ports.redirected import Redirected
from klamm.proxy.cluster.client_ports.strays import Strays
from klamm.proxy.cluster.own_requests.asking import Asking
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_sessions import OwnSessions
from klamm.proxy.cluster.problems import Problems
from klamm.proxy.config_types import Address
from klamm.proxy.edge.link import Link
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import Topology


class Leading:
    """`asking` knows the broker that answered klamm last; `strays` are led to another than they asked for."""

    def __init__(
        self,
        settings: config.Cluster,
        topology: Topology,
        dialler: Dialler,
        asking: Asking,
        ports: Ports,
        sessions: OwnSessions,
        problems: Problems,
        log: EventLog,
        redirected: Redirected | None,
    ) -> None:
        self.settings, self.topology, self.dialler, self.asking = settings, topology, dialler, asking
        self.ports, self.sessions, self.problems, self.log = ports, sessions, problems, log
        self.redirected = redirected
        self.strays = Strays(topology, ports)

    async def connect(self, link: Link, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Connect to the node of the link's port, or to the first broker that answers; a redirected
        connection to its original destination. Raises OSError.
        """
        target, topology, expires = link.target, self.topology, partial(self.sessions.began, link)
        if self.redirected is not None:
            try:
                return await self.redirected.dial(link, make, expires)
            except OSError:
                self.problems.count(target, "broker_unreachable")
                raise
        node = None if target is None else topology.nodes.get(target) or topology.remembered.get(target)
        if node is not None:
            try:
                return await self.dialler.dial(Address(node.host, node.port), make, expires)
            except OSError:
                self.problems.count(target, "broker_unreachable")
                if node.key in topology.nodes or node.key.kind == "controller":
                    raise
        failures: list[str] = []
        bootstrap = self.settings.bootstrap
        for address in self.candidates():
            try:
                transport = await self.dialler.dial(address, make, expires)
            except OSError as error:
                failures.append(str(error))
            else:
                if self.settings.bootstrap == bootstrap:  # no other servers since the dial began
                    self.asking.answered = address
                self._led(link, address)
                return transport
        self.problems.count(None, "broker_unreachable")
        raise OSError("; ".join(failures) or "no broker is known")

    def _led(self, link: Link, address: Address) -> None:
        """Note that a client was led to the first broker that answered, instead of the node of its port."""
        asked = self.ports.asked(link)
        if asked is not None:
            message = f"the broker of {asked} is not known yet: led to {address} until an answer names it"
            self.log.event("led_elsewhere", message, "warning", cluster=self.settings.name, per=asked)
            self.strays.add(link, address)

    def candidates(self) -> Iterator[Address]:
        """The addresses to try for a bootstrap connection: the bootstrap servers, then every known broker."""
        answered = self.asking.answered
        named = dict.fromkeys([*([answered] if answered else []), *self.settings.bootstrap])
        yield from named
        for node in list(self.topology.nodes.values()):
            address = Address(node.host, node.port)
            if node.key.kind == "broker" and address not in named:
                named[address] = None
                yield address
