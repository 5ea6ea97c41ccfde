"""Which brokers can be reached: as clients' attempts to connect tell, and answers to klamm itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any

from klamm.proxy.cluster.dialling import Dialler, lacks_files
from klamm.proxy.cluster.discovery import Silent
from klamm.proxy.config import Address
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.topology import Node, NodeKey, Topology


class BrokerWatch:
    """Of one cluster. An address is what a node advertises.

    klamm itself asks a broker once as it is found, and then once in each interval: so a broker that died is
    seen without a client that asks for it, and one that hangs, to which clients go on connecting, at all.
    """

    def __init__(self, cluster: str, topology: Topology, dialler: Dialler, log: EventLog) -> None:
        self.cluster, self.topology, self.dialler, self.log = cluster, topology, dialler, log
        self.dialled: set[tuple[NodeKey, Address]] = set()
        self.attempts: dict[Address, bool] = {}  # did the last one connect
        self.asked: dict[Address, float] = {}  # when klamm itself did last (s)
        self.silent: set[Address] = set()  # they accept connections, and did not answer klamm
        dialler.attempted = self.attempted

    def up(self, node: Node) -> bool | None:
        """None: nobody has tried yet."""
        return self.attempts.get(_address(node))

    def attempted(self, address: Address, connected: bool) -> None:
        """Somebody tried to connect to it."""
        if connected and address in self.silent:
            return
        before = self.attempts.get(address)
        self.attempts[address] = connected
        if not connected:
            self.silent.discard(address)
        elif before is False:
            for key in (node.key for node in self._nodes() if _address(node) == address):
                message = f"{_named(key)} at {address} can be reached again"
                self.log.event("broker_reachable", message, cluster=self.cluster, broker=str(key))

    async def meet(self, ask: Callable[[Address], Awaitable[object]]) -> None:
        """What would fail later for a client is said now, of every broker and address once. Controllers are
        often on a network of their own, and asked for by few.
        """
        brokers = [node for node in self._nodes() if node.key.kind == "broker"]
        new = {(node.key, _address(node)) for node in brokers} - self.dialled
        self.dialled |= new
        await asyncio.gather(*(self._try(key, address, ask) for key, address in new))

    async def look(self, quiet_s: float, ask: Callable[[Address], Awaitable[object]]) -> None:
        """Ask the nodes that somebody has dialled once, and klamm has not asked for so long."""
        nodes = {_address(node): node.key for node in self._nodes()}
        self.dialled &= {(key, address) for address, key in nodes.items()}
        self.attempts = {address: last for address, last in self.attempts.items() if address in nodes}
        since = monotonic() - quiet_s
        self.silent &= nodes.keys()
        self.asked = {address: at for address, at in self.asked.items() if address in nodes}
        quiet = [address for address in self.attempts if self.asked.get(address, since) <= since]
        await asyncio.gather(*(self._try(nodes[address], address, ask) for address in quiet))

    def _nodes(self) -> list[Node]:
        """Those of the run before, until the first is named: behind SASL a client's answer does that."""
        return list(self.topology.nodes.values()) or self.topology.unnamed()

    async def dial(self, address: Address) -> None:
        """No more than that. Raises OSError."""
        (await self.dialler.dial(address, asyncio.Protocol)).close()

    async def _try(self, key: NodeKey, address: Address, ask: Callable[[Address], Awaitable[object]]) -> None:
        before = self.attempts.get(address)
        self.asked[address] = monotonic()
        try:
            await ask(address)
        except OSError as error:
            if not lacks_files(error):
                self.attempted(address, False)
            if isinstance(error, Silent):
                self.silent.add(address)
            if before is None:
                said = f"{_named(key)}, advertised as {address}, cannot be used: {error}"
                if self.dialler.reachable(address) == address and "--" not in str(error):
                    said += f"; if klamm reaches it elsewhere, say --map {address}=HOST:PORT"
            elif before:
                said = f"{_named(key)} at {address} cannot be reached any more: {error}"
            else:
                return
            fields: dict[str, Any] = {"cluster": self.cluster, "broker": str(key)}
            self.log.event("broker_unreachable", said, "warning", per=str(key), **fields)
        else:
            self.silent.discard(address)
            self.attempted(address, True)


def _address(node: Node) -> Address:
    return Address(node.host, node.port)


def _named(key: NodeKey) -> str:
    return f"{key.kind} {key.node_id}"
