"""Watches which brokers can be reached, by clients' attempts to connect and by klamm's own requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Any

from klamm.proxy.cluster.conversation import Silent
from klamm.proxy.cluster.own_requests.dialling import Dialler, lacks_files
from klamm.proxy.config_types import Address
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import Node, NodeKey, Topology

AT_ONCE = 16  # nodes that klamm itself asks at one time
SHOWN = 50  # nodes that become unreachable at one time, one by one in the log
GONE_S = 3600.0  # after so long without a connection, a broker that no answer names any more is retired

Ask = Callable[[Address], Awaitable[object]]


class BrokerWatch:
    """Watches the nodes of one cluster. An address is the one that a node advertises.

    klamm asks a broker when it is found, and then in each interval. So it notices a broker that died before
    a client does, and also a broker that hangs, which still accepts connections.
    """

    def __init__(self, cluster: str, topology: Topology, dialler: Dialler, log: EventLog) -> None:
        self.cluster, self.topology, self.dialler, self.log = cluster, topology, dialler, log
        self.dialled: set[tuple[NodeKey, Address]] = set()
        self.attempts: dict[Address, bool] = {}  # did the last attempt connect?
        self.asked: dict[Address, float] = {}  # when klamm itself last asked (s)
        self.lost: dict[Address, float] = {}  # when the first of the attempts failed that all failed (s)
        self.silent: set[Address] = set()  # they accept connections, and did not answer klamm
        self.revision = 0  # goes up when a node can be reached, or no more
        self._at: tuple[int, dict[Address, list[NodeKey]]] = (-1, {})  # nodes by address, of a revision
        dialler.attempted = self.attempted

    def up(self, node: Node) -> bool | None:
        """Did the last attempt to connect succeed? None: nobody has tried yet, or it is not watched."""
        watched = node.key in self.topology.nodes or not self.topology.nodes
        return self.attempts.get(_address(node)) if watched else None

    def attempted(self, address: Address, connected: bool) -> None:
        """Note an attempt to connect to it."""
        if connected and address in self.silent:
            return
        before = self.attempts.get(address)
        self.attempts[address] = connected
        self.revision += before is not connected
        if not connected:
            self.silent.discard(address)
            self.lost.setdefault(address, monotonic())
        elif before is False:
            self.lost.pop(address, None)
            for key in self._keys_at(address):
                message = f"{_named(key)} at {address} can be reached again"
                about: dict[str, Any] = {"cluster": self.cluster, "broker": str(key)}
                self.log.event("broker_reachable", message, per=str(key), ends="broker_unreachable", **about)

    async def meet(self, ask: Ask, greet: Ask | None = None) -> None:
        """Try every broker and address once, so that a problem is logged before a client meets it. Not the
        controllers: they are often on a network of their own, and few clients use them. Many new brokers are
        only greeted, because each names all others when it is asked.
        """
        new = set(self.brokers()) - self.dialled
        self.dialled |= new
        await self._try_each(new, ask if greet is None or len(new) <= AT_ONCE else greet)

    async def look(self, quiet_s: float, ask: Ask) -> None:
        """Retire brokers that have left; ask the nodes that were dialled before, and not for `quiet_s`."""
        self._retire_gone()
        nodes = {_address(node): node.key for node in self._nodes()}
        self.dialled &= {(key, address) for address, key in nodes.items()}
        self.revision += 1
        self.attempts = {address: last for address, last in self.attempts.items() if address in nodes}
        self.lost = {address: at for address, at in self.lost.items() if address in nodes}
        since = monotonic() - quiet_s
        self.silent &= nodes.keys()
        self.dialler.refused &= nodes.keys()
        self.asked = {address: at for address, at in self.asked.items() if address in nodes}
        quiet = [address for address in self.attempts if self.asked.get(address, since) <= since]
        await self._try_each(((nodes[address], address) for address in quiet), ask)

    def _retire_gone(self) -> None:
        """A broker that was taken out of the cluster is not down."""
        now = monotonic()
        for node in list(self.topology.nodes.values()):
            lost = self.lost.get(_address(node))
            if lost is not None and now - lost >= GONE_S and self.topology.has_left(node):
                why = f"it has not been reached for {GONE_S / 60:g} minutes, and no answer names it any more"
                self.topology.retire(node, why)

    async def _try_each(self, nodes: Iterable[tuple[NodeKey, Address]], ask: Ask) -> None:
        """Ask each, `AT_ONCE` at a time."""
        left = iter(nodes)
        lost = [0]

        async def one_after_the_other() -> None:
            for key, address in left:
                await self._try(key, address, ask, lost)

        await asyncio.gather(*(one_after_the_other() for _ in range(AT_ONCE)))
        if lost[0] > SHOWN:
            more = f"{lost[0] - SHOWN} more nodes cannot be reached: klamm_broker_up is 0 for each"
            self.log.event("broker_unreachable", more, "warning", cluster=self.cluster, per="more")

    def brokers(self) -> list[tuple[NodeKey, Address]]:
        """The brokers that are known, each with its address."""
        return [(node.key, _address(node)) for node in self._nodes() if node.key.kind == "broker"]

    async def ask_one(self, key: NodeKey, address: Address, ask: Ask) -> None:
        """Ask a node, and note whether it can be reached."""
        await self._try(key, address, ask, [0])

    def _keys_at(self, address: Address) -> list[NodeKey]:
        if self._at[0] != self.topology.revision:
            at: dict[Address, list[NodeKey]] = {}
            for node in self._nodes():
                at.setdefault(_address(node), []).append(node.key)
            self._at = self.topology.revision, at
        return self._at[1].get(address, [])

    def _nodes(self) -> list[Node]:
        """The known nodes; while there are none, as behind SASL at first, those of the run before."""
        return list(self.topology.nodes.values()) or self.topology.unnamed()

    async def dial(self, address: Address) -> None:
        """Connect to it, and close the connection. Raises OSError."""
        (await self.dialler.dial(address, asyncio.Protocol)).close()

    async def _try(self, key: NodeKey, address: Address, ask: Ask, lost: list[int]) -> None:
        """`lost` counts the nodes that became unreachable in this round."""
        before = self.attempts.get(address)
        self.asked[address] = monotonic()
        if address in self.dialler.refused:
            ask = self.dial  # an answer to what klamm may ask before it has authenticated says nothing
        try:
            await ask(address)
        except OSError as error:
            if not lacks_files(error):
                self.attempted(address, False)
            if isinstance(error, Silent):
                self.silent.add(address)
            if before is None:
                message = f"{_named(key)}, advertised as {address}, cannot be used: {error}"
                if self.dialler.reachable(address) == address and "--" not in str(error):
                    message += f"; if klamm reaches it elsewhere, say --map {address}=HOST:PORT"
            elif before:
                message = f"{_named(key)} at {address} cannot be reached any more: {error}"
            else:
                return
            lost[0] += 1
            if lost[0] > SHOWN:
                return
            fields: dict[str, Any] = {"cluster": self.cluster, "broker": str(key)}
            self.log.event("broker_unreachable", message, "warning", per=str(key), **fields)
        else:
            self.silent.discard(address)
            self.attempted(address, True)


def _address(node: Node) -> Address:
    return Address(node.host, node.port)


def _named(key: NodeKey) -> str:
    return f"{key.kind} {key.node_id}"
