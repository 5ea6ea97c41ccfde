"""The nodes of a cluster, in the process that leads and in a worker."""

from __future__ import annotations

from klamm.proxy.session.rewriting.topology import NodeKey, Topology
from klamm.proxy.workers.topologies import Learning, nodes_of, take_learned, take_nodes

FIRST, SECOND = NodeKey("broker", 1), NodeKey("broker", 2)


def spread(lead: Topology, worker: Topology) -> None:
    take_nodes(worker, nodes_of(lead, 9092, True))


def test_a_worker_forgets_the_nodes_that_the_lead_forgets_and_may_name_them_again() -> None:
    lead, worker = Topology(9092, 9192), Topology(9092, 9192)
    learning = Learning(worker)
    for node_id in (1, 2):
        node = lead.learn("broker", node_id, "kafka", 9092 + node_id)
        lead.bound(node, lead.port_for(node.key))
    spread(lead, worker)
    learning.new()
    assert worker.nodes[SECOND].listen_port == 9095
    lead.forget(lead.nodes[SECOND], "it has left")
    worker.learn("broker", 3, "kafka", 9095)  # the lead does not know it yet
    spread(lead, worker)
    assert [key.node_id for key in worker.nodes] == [1, 3]

    worker.learn("broker", 2, "kafka", 9094)  # it came back, and a client of the worker was told so
    new = learning.new()
    assert new is not None
    take_learned(lead, new)
    assert [key.node_id for key in lead.nodes] == [1, 3, 2]
