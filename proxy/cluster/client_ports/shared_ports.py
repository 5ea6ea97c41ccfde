"""Listening ports that clusters share. The server name (SNI) of a connection says for which one it is."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from klamm.proxy.cluster.client_ports.ports import Port
from klamm.proxy.cluster.problems import Problems
from klamm.proxy.config_types import Address
from klamm.proxy.edge.accepting.acceptor import Network, Refused
from klamm.proxy.edge.accepting.client_hello import Hello
from klamm.proxy.edge.accepting.entrance import Entrance
from klamm.proxy.edge.accepting.listener import Enter, Listener, bound
from klamm.proxy.edge.accepting.named_entrance import NamedEntrance, NotServed
from klamm.proxy.edge.accepting.pace import Pace
from klamm.proxy.edge.accepting.tls_alerts import MISSING_EXTENSION, UNRECOGNIZED_NAME
from klamm.proxy.edge.sockets import Arrival

BACKLOG = 1024
SHOWN = 5  # clusters whose names are in a line of the log
LONGEST = 100  # characters of a name that a client made up
NO_NAME = (
    "the client sends no server name (SNI), by which klamm tells clusters and brokers apart: let its "
    "bootstrap.servers have a name, no IP address ({})"
)
UNKNOWN = (
    "the client asks for {!r}, which is a name of no cluster on this port ({}): clusters[].names has them"
)
NOT_READY = "the client asks for {!r}, and cluster {} has not been found yet: it may come again"


class Named(Protocol):
    """The ports of one cluster, as a shared port sees them."""

    problems: Problems
    is_open: bool
    pace: Pace
    hand_over: Callable[[Port], Enter] | None

    @property
    def balancers(self) -> Sequence[Network]: ...
    @property
    def cluster(self) -> str: ...
    def pattern(self) -> str:
        """Its names, for people."""

    def entrance(self, name: str, arrival: Arrival) -> tuple[Entrance, Arrival] | None:
        """The way in for a client that asks for this name; None: it is none of the cluster's."""


class SharedPort:
    """One listening address. `members`: the clusters whose clients come to it."""

    def __init__(self, address: Address) -> None:
        self.address, self.members = address, list[Named]()
        self.listener: Listener | None = None
        self.opening = asyncio.Lock()

    async def open(self, member: Named) -> Listener:
        """Its listener, opened by the first member that lets clients in. Raises OSError."""
        async with self.opening:
            if self.listener is None:
                entrance = self.way_in(member) if member.hand_over is None else HandOver(self)
                self.listener = Listener(await bound(*self.address, BACKLOG), entrance, member.pace)
                if not self.members:  # the last one has left meanwhile
                    self.listener.close()
            return self.listener

    def way_in(self, member: Named) -> NamedEntrance:
        """For all its connections; `member` knows the load balancers."""
        return NamedEntrance(refused=self.refused, balancers=member.balancers, choose=self.choose)

    def leave(self, member: Named) -> None:
        """The last one closes the port."""
        self.members.remove(member)
        if self.listener is not None and not self.members:
            self.listener.close()

    def choose(self, hello: Hello, arrival: Arrival) -> tuple[Entrance, Arrival]:
        """Raises NotServed."""
        name = hello.server_name
        if name is None:
            raise NotServed("no_server_name", NO_NAME.format(self._known()), MISSING_EXTENSION)
        for each in self.members:
            found = each.entrance(name, arrival)
            if found is not None and each.is_open:
                return found
            if found is not None:
                raise NotServed("cluster_not_found", NOT_READY.format(name[:LONGEST], each.cluster), None)
        why = UNKNOWN.format(name[:LONGEST], self._known())
        raise NotServed("unknown_server_name", why, UNRECOGNIZED_NAME)

    def _known(self) -> str:
        """The names of the first clusters, for people."""
        names = [each.pattern() for each in self.members[:SHOWN]]
        return "; ".join([*names, "..."] if len(self.members) > SHOWN else names)

    def refused(self, client: tuple[str, int], kind: str, message: str) -> None:
        """Count and log a client that was for no cluster: for the only one, or else for none."""
        first = self.members[0].problems
        problems = first if len(self.members) == 1 else Problems("", first.stats, first.log)
        problems.refused(None, client, kind, message)
        for each in self.members:
            each.problems.refused_any = True


@dataclass(frozen=True, slots=True)
class HandOver:
    """The way of its connections to a worker, by any of its clusters: there the names decide."""

    port: SharedPort

    def enter(self, sock: socket.socket, peer: tuple[str, int]) -> Coroutine[Any, Any, None]:
        return self._first().enter(sock, peer)

    def takes(self, again: Callable[[], None]) -> bool:
        return self._first().takes(again)

    def _first(self) -> Enter:
        hand_over = self.port.members[0].hand_over
        assert hand_over is not None
        return hand_over(Port(None))

    @property
    def refused(self) -> Refused:
        return self.port.refused


class SharedPorts:
    """All of the process."""

    def __init__(self) -> None:
        self.at: dict[Address, SharedPort] = {}

    def join(self, address: Address, member: Named) -> SharedPort:
        """Its clients are expected there from now on."""
        port = self.at.setdefault(address, SharedPort(address))
        port.members.append(member)
        return port

    def leave(self, port: SharedPort, member: Named) -> None:
        """No client of it is let in any more."""
        port.leave(member)
        if not port.members:
            del self.at[port.address]

    def is_open(self, address: Address) -> bool:
        """Does a cluster listen there?"""
        return address in self.at and self.at[address].listener is not None
