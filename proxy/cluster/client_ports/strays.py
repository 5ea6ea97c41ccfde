"""Connections to the port or name of a node that no response has named yet. They are led to another broker.

That broker answers NOT_LEADER_OR_FOLLOWER or NOT_COORDINATOR, and the client asks for Metadata, which names
the node. The client would go on with this connection as the node's own; so klamm ends it, and the next one
leads to the node.
"""

from __future__ import annotations

import asyncio

from klamm.proxy.cluster.client_ports.ports import Ports
from klamm.proxy.config_types import Address
from klamm.proxy.edge.link import Link
from klamm.proxy.session.rewriting.topology import NodeKey, Topology

LED_BACK = "its broker is known now"
ANSWERS_S = 5.0  # such a connection waits at most so long for answers


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
        """Lead them back after the current callback: the answer that names the node must go out first."""
        if self.led_to:
            asyncio.get_running_loop().call_soon(self._lead_back)

    def _lead_back(self) -> None:
        for link, address in list(self.led_to.items()):
            key = self.ports.node_asked(link)
            node = None if key is None else self._node_of(key)
            if node is None:
                continue
            del self.led_to[link]
            if address != node and link.broker is not None:
                link.drain(LED_BACK, ANSWERS_S)

    def _node_of(self, key: NodeKey) -> Address | None:
        """The address of a node; None before it is named."""
        node = self.topology.nodes.get(key)
        return None if node is None else Address(node.host, node.port)
