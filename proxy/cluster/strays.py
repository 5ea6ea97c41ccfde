"""Connections to the port of a node that nobody has named yet. They are led to another broker.

That broker answers NOT_LEADER_OR_FOLLOWER or NOT_COORDINATOR, and the client asks for Metadata, which names
the node. The client would go on with this connection as the node's own; so klamm ends it, and the next one
leads to the node.
"""

from __future__ import annotations

import asyncio

from klamm.proxy.cluster.ports import Ports
from klamm.proxy.config import Address
from klamm.proxy.edge.link import Link
from klamm.proxy.session.topology import NodeKey, Topology

LED_BACK = "its broker is known now"
ANSWERS_S, LOOK_S = 5.0, 0.001  # a connection that has to end waits so long for answers, and looks so often


class Strays:
    """`led_to` has the address of the broker that a connection was led to instead."""

    def __init__(self, topology: Topology, ports: Ports) -> None:
        self.topology, self.ports = topology, ports
        self.led_to: dict[Link, Address] = {}

    def add(self, link: Link, address: Address) -> None:
        self.led_to[link] = address
        self.lead_back_soon()  # the node may have been named while the other broker was dialled

    def remove(self, link: Link) -> None:
        self.led_to.pop(link, None)

    def lead_back_soon(self) -> None:
        """When what is being done is done: the answer that names the node goes out first."""
        if self.led_to:
            asyncio.get_running_loop().call_soon(self._lead_back)

    def _lead_back(self) -> None:
        for link, address in list(self.led_to.items()):
            port = self.ports.by_port.get(link.local_address[1])
            node = None if port is None or port.target is None else self._node_of(port.target)
            if node is None:
                continue
            del self.led_to[link]
            if address != node:
                self._leave(link, asyncio.get_running_loop().time() + ANSWERS_S)

    def _leave(self, link: Link, until: float) -> None:
        """End it when the pending requests are answered, or at `until`; the client is read no more."""
        if link.broker is None or link.broker.gone or link.client.gone:
            return
        link.client.pause("leaving")
        loop = asyncio.get_running_loop()
        if link.session.pending() and loop.time() < until:
            link.timers["leave"] = loop.call_later(LOOK_S, self._leave, link, until)
        else:
            link.end(LED_BACK)

    def _node_of(self, key: NodeKey) -> Address | None:
        """Where a node is, once it is named."""
        node = self.topology.nodes.get(key)
        return None if node is None else Address(node.host, node.port)
