"""The nodes of a cluster as metrics and the admin API tell them."""

from __future__ import annotations

from klamm.proxy.cluster.client_ports.ports import Ports
from klamm.proxy.cluster.own_requests.broker_watch import BrokerWatch
from klamm.proxy.metrics.snapshot import NodeState
from klamm.proxy.session.rewriting.topology import Topology

MOST_TOLD = 5_000  # nodes of a cluster


class NodeStates:
    """Made anew when something in them may have changed: probes and scrapes ask often. Of a cluster of more
    than MOST_TOLD nodes, those with a listener come first, and the others are left out.
    """

    def __init__(self, topology: Topology, watch: BrokerWatch, ports: Ports) -> None:
        self.topology, self.watch, self.ports = topology, watch, ports
        self.seen: object = None
        self.states: tuple[NodeState, ...] = ()
        self.labelled = -1  # the revision of the topology that `all_labels` is of
        self.all_labels: frozenset[str] = frozenset()

    def of(self, host: str | None) -> tuple[NodeState, ...]:
        """In the order of their keys; `host` is that of klamm's listeners, but of nodes that have names of
        their own; None: there is none for a node.
        """
        topology = self.topology
        seen = host, topology.revision, len(topology.remembered), self.watch.revision, self.ports.revision
        if self.seen != seen:
            nodes = [*topology.nodes.values(), *topology.unnamed()]
            if len(nodes) > MOST_TOLD:
                nodes.sort(key=lambda node: node.listen_port is None)
                del nodes[MOST_TOLD:]
            nodes.sort(key=lambda node: node.key)
            self.states = tuple(
                NodeState.of(
                    node,
                    host if host is None or topology.host_of is None else topology.host_of(node.key),
                    self.watch.up(node),
                    node.key not in topology.nodes,
                    self.ports.unbound.get(node.key, ""),
                )
                for node in nodes
            )
            self.seen = seen
        return self.states

    def labels(self) -> frozenset[str]:
        """The nodes that are named, as rules name them: all of them."""
        if self.labelled != self.topology.revision:
            self.labelled = self.topology.revision
            self.all_labels = frozenset(map(str, self.topology.nodes))
        return self.all_labels
