"""The nodes of one cluster: the address of each, and klamm's listening port for it. Pure state, which
connections share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from klamm.proxy.config_types import Address
from klamm.proxy.session.rewriting.free_ports import FreePorts

MAX_CHANGES = 50  # told one by one in the log, of those that come together
Kind = Literal["broker", "controller"]


class NodeKey(NamedTuple):
    """A combined Kafka node has two keys: a broker and a controller."""

    kind: Kind
    node_id: int

    def __str__(self) -> str:
        return str(self.node_id) if self.kind == "broker" else f"controller {self.node_id}"


def is_address(host: str | None, port: int) -> bool:
    """Does a response name a place there? FindCoordinator has an empty host and port -1 where there is no
    coordinator.
    """
    return bool(host) and port > 0


class Unbindable(Exception):
    """klamm cannot bind a listening port for this node."""


def broker_label(target: NodeKey | None) -> str:
    return "bootstrap" if target is None else str(target)


@dataclass(slots=True, eq=False)
class Node:
    """`host` and `port` are what the cluster advertises; `listen_port` is None until klamm's port for it
    is bound, and `failure` says why that cannot be. `listed`: the number of the list of all brokers that it
    was last in.
    """

    key: NodeKey
    host: str
    port: int
    listen_port: int | None = None
    failure: str | None = None
    listed: int = 0


class Topology:
    """Nodes as they come, go and move; and the names of topic ids."""

    def __init__(
        self, first: int, last: int, pinned: dict[int, int] | None = None, max_topic_ids: int = 100_000
    ) -> None:
        self.first, self.last, self.pinned = first, last, pinned or {}
        self.nodes: dict[NodeKey, Node] = {}
        self.remembered: dict[NodeKey, Node] = {}  # nodes of the run before, also if named again
        self.host_of: Callable[[NodeKey], str] | None = None  # the name of each node, where all share a port
        self.one_port: int | None = None  # that port, as clients are told it
        self.remembers = False  # are the ports of this run kept for the next?
        self.revision = 0  # goes up with every change: responses rewritten before may be wrong now
        self.lists = 0  # of all brokers, that were read to their end
        self.cluster_id: str | None = None
        self.topic_names: dict[bytes, str] = {}
        self.names_revision = 0  # goes up with every topic id that got a name
        self.max_topic_ids = max_topic_ids
        self.changes: list[tuple[NodeKey, str]] = []  # for the log, drained at the edge
        self.more_changes = 0  # that are not told one by one
        self._free = FreePorts(first + 1, last)  # of named nodes and of the configuration
        self._unreserved = FreePorts(first + 1, last)  # and of nodes of the run before that nobody has named
        self._taken: dict[int, int] = {}  # port -> how many named nodes have it
        self._reserved: dict[int, set[NodeKey]] = {}  # port -> nodes of the run before that nobody has named
        self._pinned_ports = frozenset(self.pinned.values())
        for port in self._pinned_ports:
            self._free.take(port)
            self._unreserved.take(port)

    def learn(self, kind: Kind, node_id: int, host: str, port: int) -> Node:
        """Note that a node was named with this address. If the node has moved, its listening port stays, and
        new connections to that port go to the new address.
        """
        key = NodeKey(kind, node_id)
        node = self.nodes.get(key)
        if node is None:
            self._unreserve(key)
            node = self.nodes[key] = Node(key, host, port)
            self.revision += 1
            self._changed(key, f"{kind} {node_id} found at {Address(host, port)}")
        elif node.host != host or node.port != port:
            self._changed(
                key, f"{kind} {node_id} moved from {Address(node.host, node.port)} to {Address(host, port)}"
            )
            self.revision += 1
            node.host, node.port = host, port
        node.listed = self.lists + 1
        return node

    def learn_all(self, nodes: Mapping[NodeKey, tuple[str, int]]) -> None:
        """Learn all brokers of the cluster, and other nodes."""
        for key, address in nodes.items():
            self.learn(*key, *address)
        self.lists += 1

    def _changed(self, key: NodeKey, what: str) -> None:
        if len(self.changes) < MAX_CHANGES:
            self.changes.append((key, what))
        else:
            self.more_changes += 1

    def take_changes(self) -> tuple[list[tuple[NodeKey, str]], int]:
        """For the log: each is told once; and how many more there were."""
        taken = self.changes, self.more_changes
        self.changes, self.more_changes = [], 0
        return taken

    def share_port(self, port: int, host_of: Callable[[NodeKey], str]) -> None:
        """From now on clients are told this port for all nodes, and a name for each."""
        self.one_port, self.host_of = port, host_of
        self.revision += 1
        for node in self.nodes.values():
            if node.listen_port is not None:
                self.bound(node, port)

    def address(self, node: Node, host: str) -> tuple[str, int] | None:
        """klamm's address for a node; None until its port is bound. `host`: that of nodes without a name."""
        if node.listen_port is None:
            return None
        return (host if self.host_of is None else self.host_of(node.key)), node.listen_port

    def remember(self, node: Node) -> None:
        """Keep the port of a node of the run before for it, if the configuration still allows that port."""
        if self.one_port is not None:
            self.remembered[node.key] = Node(node.key, node.host, node.port, self.one_port)
            return
        port = self.pinned.get(node.key.node_id) if node.key.kind == "broker" else None
        if port is None and (not self.first or self.first < (node.listen_port or 0) <= self.last):
            port = node.listen_port
            if port in self._pinned_ports:
                return
        if port is not None:
            self._unreserve(node.key)
            self.remembered[node.key] = Node(node.key, node.host, node.port, port)
            if node.key not in self.nodes:
                self._reserved.setdefault(port, set()).add(node.key)
                self._unreserved.take(port)

    def unnamed(self) -> list[Node]:
        """Nodes of the run before that no response has named in this run."""
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
        """Note that a node's listening port is bound, or why it cannot be."""
        if (node.listen_port, node.failure) == (port, failure):
            return
        self._leave(node.listen_port)
        node.listen_port, node.failure = port, failure
        self.revision += 1
        if port is not None:
            self._taken[port] = self._taken.get(port, 0) + 1
            self._free.take(port)
            self._unreserved.take(port)
            for key in list(self._reserved.get(port, ())):
                self._unreserve(key)
                del self.remembered[key]

    def _leave(self, port: int | None) -> None:
        """Note that a named node has this port no more."""
        if port is None:
            return
        self._taken[port] -= 1
        if not self._taken[port]:
            del self._taken[port]
            if port not in self._pinned_ports:
                self._free.give_back(port)
                if port not in self._reserved:
                    self._unreserved.give_back(port)

    def _unreserve(self, key: NodeKey) -> None:
        """Give back the port that is reserved for a node of the run before: it is named now, or forgotten."""
        node = None if key in self.nodes else self.remembered.get(key)
        port = None if node is None else node.listen_port
        keys = self._reserved.get(port) if port is not None else None
        if port is None or keys is None or key not in keys:
            return
        keys.remove(key)
        if not keys:
            del self._reserved[port]
            if port not in self._taken and port not in self._pinned_ports:
                self._unreserved.give_back(port)

    def learn_topic(self, topic_id: bytes, name: str) -> bool:
        """Note the name of a topic id. True if it is new."""
        if self.topic_names.get(topic_id) == name or len(self.topic_names) >= self.max_topic_ids:
            return False
        self.topic_names[topic_id] = name
        self.names_revision += 1
        return True

    def unbound(self) -> list[Node]:
        """Nodes without a listening port; those whose port follows from their id come first, to get it."""
        waiting = [node for node in self.nodes.values() if node.listen_port is None]
        return sorted(waiting, key=lambda node: (not 0 <= node.key.node_id < self._slots(), node.key))

    def port_for(self, key: NodeKey) -> int:
        """The port of a node: pinned by the configuration, else that of the run before, else first + 1 + id
        while ids fit the range, else the id modulo its size. Controllers count down from the end.

        If that port is taken, the next free one; ports of remembered nodes that no response has named are
        used only when no other is free, and then that of the broker that is gone for longest, which is
        forgotten. A range that starts at 0 asks for any free port. Raises LookupError if the range is full.
        """
        if self.one_port is not None:
            return self.one_port
        if key.kind == "broker" and key.node_id in self.pinned:
            return self.pinned[key.node_id]
        before = self.remembered.get(key)
        remembered = None if before is None else before.listen_port
        if remembered is not None and remembered not in self._taken and remembered not in self._pinned_ports:
            return remembered
        if not self.first:
            return 0
        if self._slots() > 0:
            meant = self._port(*key)
            for ports in (self._unreserved, self._free):
                free = ports.up_from(meant) if key.kind == "broker" else ports.down_from(meant)
                if free is not None:
                    return free
        gone = [node for node in self.nodes.values() if self._is_gone(node)]
        if not gone:
            raise LookupError(f"no port is left for it in {self.first}-{self.last}")
        node = min(gone, key=lambda node: node.listed)
        port = node.listen_port
        assert port is not None
        self.forget(node, f"port {port} is another's now")
        return port

    def _is_gone(self, node: Node) -> bool:
        """Is it a broker that has left, with a port that others may have?"""
        if not self.has_left(node) or node.listen_port is None:
            return False
        return node.listen_port not in self._pinned_ports and self._taken[node.listen_port] == 1

    def has_left(self, node: Node) -> bool:
        """Is it a broker that the last list of all brokers did not name?"""
        return node.key.kind == "broker" and node.listed < self.lists

    def forget(self, node: Node, why: str) -> None:
        """Give back its port. An answer that names it makes it known again."""
        self._changed(node.key, f"{node.key.kind} {node.key.node_id} is gone: {why}")
        self.bound(node, None)
        del self.nodes[node.key]
        self.remembered.pop(node.key, None)
        self.revision += 1

    def retire(self, node: Node, why: str) -> None:
        """Treat a node as one of the run before: its port is kept for it, in case it comes back."""
        before = Node(node.key, node.host, node.port, node.listen_port)
        self.forget(node, why)
        self.remember(before)

    def is_stable(self, node: Node) -> bool:
        """Will the node have the same port after a restart?"""
        pinned = node.key.kind == "broker" and node.key.node_id in self.pinned
        kept = pinned or self.remembers or not self.first or self.one_port is not None
        return kept or node.listen_port == self._port(*node.key)

    def _slots(self) -> int:
        return self.last - self.first

    def _port(self, kind: Kind, number: int) -> int:
        slot = number % self._slots()
        return self.first + 1 + slot if kind == "broker" else self.last - slot
