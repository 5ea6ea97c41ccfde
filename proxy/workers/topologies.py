"""The nodes and the topic names of a cluster, the same in all processes: the lead opens the ports, and any
process may learn a node or a name from the answer of a broker.
"""

from __future__ import annotations

from itertools import islice

from klamm.proxy.session.rewriting.topology import Node, NodeKey, Topology
from klamm.proxy.workers.messages import Learned, NodeAt, Nodes


def nodes_of(topology: Topology, bootstrap_port: int, let_in: bool) -> Nodes:
    """For workers."""
    now, before = (
        [NodeAt(each.key, each.host, each.port, each.listen_port, each.failure) for each in nodes.values()]
        for nodes in (topology.nodes, topology.remembered)
    )
    return Nodes(topology.cluster_id, bootstrap_port, let_in, now, before)


def take_nodes(topology: Topology, nodes: Nodes) -> None:
    """Takes over the nodes of the lead: its addresses and ports replace those of this process."""
    topology.cluster_id = nodes.cluster_id
    held = {each.key for each in nodes.nodes}
    for node in list(topology.nodes.values()):
        if node.key not in held and (node.listen_port, node.failure) != (None, None):
            topology.forget(node, "the lead has forgotten it")  # else the lead does not know it yet
    for each in nodes.nodes:
        node = topology.learn(each.key.kind, each.key.node_id, each.host, each.port)
        topology.bound(node, each.listen_port, each.failure)
    topology.remembered = {
        each.key: Node(each.key, each.host, each.port, each.listen_port) for each in nodes.remembered
    }
    topology.take_changes()  # the lead logs them


def take_learned(topology: Topology, learned: Learned) -> bool:
    """Takes over the nodes and topics that another process has learned. True if a topic got its name so."""
    for key, host, port in learned.nodes:
        topology.learn(key.kind, key.node_id, host, port)
    new = [topology.learn_topic(topic_id, name) for topic_id, name in learned.topics]
    return any(new)


class Learning:
    """Finds what is new in a topology since the last call."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.seen = (-1, -1)
        self.told: dict[NodeKey, tuple[Node, str, int]] = {}  # a node that was forgotten is told again
        self.names = 0

    def new(self) -> Learned | None:
        """Nodes that were found or have moved, and names of topics. None if there are none."""
        topology = self.topology
        revisions = topology.revision, topology.names_revision
        if revisions == self.seen:
            return None
        self.seen = revisions
        now = {key: (node, node.host, node.port) for key, node in topology.nodes.items()}
        nodes = [(key, *each[1:]) for key, each in now.items() if self.told.get(key) != each]
        self.told = now
        topics = list(islice(topology.topic_names.items(), self.names, None))
        self.names += len(topics)
        return Learned(nodes, topics) if nodes or topics else None
