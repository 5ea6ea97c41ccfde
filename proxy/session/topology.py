"""The nodes of one cluster: where each is reached, and on which port klamm stands for it. Pure state, shared
by connections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

MAX_CHANGES = 1000  # kept for the log
Kind = Literal["broker", "controller"]


class NodeKey(NamedTuple):
    """A combined node is two: a broker and a controller."""

    kind: Kind
    node_id: int

    def __str__(self) -> str:
        return str(self.node_id) if self.kind == "broker" else f"controller {self.node_id}"


class Unbindable(Exception):
    """A node for which no listener can be had."""


def broker_label(target: NodeKey | None) -> str:
    return "bootstrap" if target is None else str(target)


@dataclass(slots=True)
class Node:
    """`host` and `port` are what the cluster advertises; `listen_port` is None until klamm's listener is
    bound, and `failure` says why it cannot be.
    """

    key: NodeKey
    host: str
    port: int
    listen_port: int | None = None
    failure: str | None = None


class Topology:
    """Nodes as they come, go and move; and the names of topic ids."""

    def __init__(
        self, first: int, last: int, pinned: dict[int, int] | None = None, max_topic_ids: int = 100_000
    ) -> None:
        self.first, self.last, self.pinned = first, last, pinned or {}
        self.nodes: dict[NodeKey, Node] = {}
        self.remembered: dict[NodeKey, Node] = {}  # of the run before, whether named since or not
        self.remembers = False  # are the ports of this run kept for the next?
        self.revision = 0  # goes up with every change: what was rewritten before may be wrong now
        self.cluster_id: str | None = None
        self.topic_names: dict[bytes, str] = {}
        self.names_revision = 0  # goes up with every topic id that got a name
        self.max_topic_ids = max_topic_ids
        self.changes: list[tuple[NodeKey, str]] = []  # for the log, drained at the edge

    def learn(self, kind: Kind, node_id: int, host: str, port: int) -> Node:
        """A node was named with this address. A listener follows its node: only later connections go
        elsewhere.
        """
        key = NodeKey(kind, node_id)
        node = self.nodes.get(key)
        if node is None:
            node = self.nodes[key] = Node(key, host, port)
            self.revision += 1
            self._changed(key, f"{kind} {node_id} found at {host}:{port}")
        elif node.host != host or node.port != port:
            self._changed(key, f"{kind} {node_id} moved from {node.host}:{node.port} to {host}:{port}")
            self.revision += 1
            node.host, node.port = host, port
        return node

    def _changed(self, key: NodeKey, what: str) -> None:
        if len(self.changes) < MAX_CHANGES:
            self.changes.append((key, what))

    def remember(self, node: Node) -> None:
        """A node of the run before has the port that it had, where the configuration leaves it that."""
        port = self.pinned.get(node.key.node_id) if node.key.kind == "broker" else None
        if port is None and self.first < (node.listen_port or 0) <= self.last:
            port = node.listen_port
            if port in self.pinned.values():
                return
        if port is not None:
            self.remembered[node.key] = Node(node.key, node.host, node.port, port)

    def unnamed(self) -> list[Node]:
        """Nodes of the run before that neither the cluster nor an answer has named in this one."""
        return [node for key, node in self.remembered.items() if key not in self.nodes]

    def ahead(self, whole_range: bool) -> dict[int, NodeKey | None]:
        """The ports to open before their nodes are named, each with the node of the run before, if any."""
        ports: dict[int, NodeKey | None] = dict.fromkeys(self.pinned.values())
        if whole_range:
            ports |= dict.fromkeys(range(self.first + 1, self.last + 1))
        ports |= {node.listen_port: node.key for node in self.unnamed() if node.listen_port}
        for node in self.nodes.values():
            ports.pop(node.listen_port or 0, None)
        return ports

    def bound(self, node: Node, port: int | None, failure: str | None = None) -> None:
        """A node's listener is there, or cannot be."""
        node.listen_port, node.failure = port, failure
        self.revision += 1
        for other in self.unnamed():
            if other.listen_port == port:
                del self.remembered[other.key]

    def learn_topic(self, topic_id: bytes, name: str) -> None:
        if self.topic_names.get(topic_id) != name and len(self.topic_names) < self.max_topic_ids:
            self.topic_names[topic_id] = name
            self.names_revision += 1

    def unbound(self) -> list[Node]:
        """Nodes without a listener; first those whose port follows from their id, before another takes it."""
        waiting = [node for node in self.nodes.values() if node.listen_port is None]
        return sorted(waiting, key=lambda node: (not 0 <= node.key.node_id < self._slots(), node.key))

    def port_for(self, key: NodeKey) -> int:
        """The port of a node: pinned by the configuration, else that of the run before, else first + 1 + id
        while ids fit the range, else the id modulo its size. Controllers count down from the end.

        Where two meet, the later one gets the next free port; ports of remembered nodes that nobody has named
        are free when no other is. A range that starts at 0 asks for any free port. Raises LookupError when
        the range is full.
        """
        if key.kind == "broker" and key.node_id in self.pinned:
            return self.pinned[key.node_id]
        if not self.first:
            return 0
        taken = {node.listen_port for node in self.nodes.values()} | set(self.pinned.values())
        before = self.remembered.get(key)
        if before is not None and before.listen_port is not None and before.listen_port not in taken:
            return before.listen_port
        reserved = {node.listen_port for node in self.unnamed()}
        for avoided in (taken | reserved, taken):
            for step in range(self._slots()):
                port = self._port(key.kind, key.node_id + step)
                if port not in avoided:
                    return port
        raise LookupError(f"no port is left for it in {self.first}-{self.last}")

    def is_stable(self, node: Node) -> bool:
        """Is the node's port the one it will have after a restart?"""
        pinned = node.key.kind == "broker" and node.key.node_id in self.pinned
        kept = pinned or self.remembers or not self.first
        return kept or node.listen_port == self._port(*node.key)

    def _slots(self) -> int:
        return self.last - self.first

    def _port(self, kind: Kind, number: int) -> int:
        slot = number % self._slots()
        return self.first + 1 + slot if kind == "broker" else self.last - slot
