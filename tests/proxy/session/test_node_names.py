"""The host names of nodes behind one port, and clusters whose names meet."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.session.rewriting.node_names import LAST_ID, NodeNames, common_name
from klamm.proxy.session.rewriting.topology import Kind, Node, NodeKey, Topology

IDS = st.integers(0, LAST_ID)
KINDS: st.SearchStrategy[Kind] = st.sampled_from(["broker", "controller"])
PARTS = ["", "a", "b-", "controller-", "1-", "-1", ".x", "-1.x", "a5-", "-7.x", "c", "0-controller-"]
BEFORE = [part for part in PARTS if not part[-1:].isdigit()]
AFTER = [part for part in PARTS if not part[:1].isdigit()]


def names(nodes: str, bootstrap: str = "bootstrap.example") -> NodeNames:
    return NodeNames(bootstrap, nodes, 9093)


@given(KINDS, IDS, st.sampled_from(BEFORE), st.sampled_from(AFTER))
def test_the_name_of_a_node_leads_back_to_it(kind: Kind, node_id: int, before: str, after: str) -> None:
    these = names(f"{before}$(node){after}")
    key = NodeKey(kind, node_id)
    assert these.node(these.host(key)) == key


@pytest.mark.parametrize(
    "host",
    [
        "broker-.example",
        "broker-x.example",
        "broker-01.example",
        "broker--1.example",
        "broker-+1.example",
        "broker-1 .example",
        "broker-1.example.com",
        "a.broker-1.example",
        f"broker-{LAST_ID + 1}.example",
        "broker-\u0661.example",
        "broker-controller-.example",
        "broker.example",
        "",
    ],
)
def test_another_name_is_that_of_no_node(host: str) -> None:
    assert names("broker-$(node).example").node(host) is None


def test_a_name_needs_room_for_the_node_between_both_parts() -> None:
    assert names("a.$(node).a").node("a.a") is None
    assert names("a-$(node)-a").node("a-a") is None


def test_names_are_in_lower_case() -> None:
    these = NodeNames("Bootstrap.Example", "Broker-$(node).Example", 9093)
    assert these.has("bootstrap.example")
    assert these.host(NodeKey("broker", 1)) == "broker-1.example"


def all_of(these: NodeNames) -> set[str]:
    ids = (0, 1, 5, 7, 17, 57)
    nodes = {these.host(NodeKey(kind, node_id)) for kind in ("broker", "controller") for node_id in ids}
    return nodes | {these.bootstrap}


def test_clusters_whose_names_meet_are_found() -> None:
    patterns = [f"{before}$(node){after}" for before, after in product(BEFORE, AFTER)]
    meeting = 0
    for one, other in product(patterns, patterns):
        these, those = names(one, "one.example"), names(other, "other.example")
        common = common_name(these, those)
        if common is None:
            assert not all_of(these) & all_of(those), (one, other)
        else:
            assert these.has(common), (one, other)
            assert those.has(common), (one, other)
            meeting += one != other
    assert meeting > 20


def test_a_bootstrap_name_may_be_that_of_another_cluster_or_of_its_nodes() -> None:
    assert common_name(names("a-$(node)"), names("b-$(node)")) == "bootstrap.example"
    assert common_name(names("a-$(node)", "b-3"), names("b-$(node)", "other")) == "b-3"
    assert common_name(names("a-$(node)", "one"), names("b-$(node)", "a-controller-4")) == "a-controller-4"


def test_nodes_of_a_topology_with_names_share_its_port() -> None:
    topology = Topology(19092, 19191)
    topology.share_port(9093, names("b-$(node)").host)
    for kind, node_id in (("broker", 1), ("broker", 2), ("controller", 1)):
        node = topology.learn(kind, node_id, "kafka", 9092)  # type: ignore[arg-type]
        assert topology.address(node, "klamm") is None
        topology.bound(node, topology.port_for(node.key))
        assert topology.is_stable(node)
    told = {topology.address(node, "klamm") for node in topology.nodes.values()}
    assert told == {("b-1", 9093), ("b-2", 9093), ("b-controller-1", 9093)}
    revision = topology.revision
    topology.share_port(9999, names("n$(node)").host)
    assert topology.revision > revision
    told = {topology.address(node, "klamm") for node in topology.nodes.values()}
    assert told == {("n1", 9999), ("n2", 9999), ("ncontroller-1", 9999)}


def test_a_node_of_the_run_before_is_remembered_whatever_its_port_was() -> None:
    topology = Topology(19092, 19191)
    topology.share_port(9093, names("b-$(node)").host)
    key = NodeKey("broker", 3)
    topology.remember(Node(key, "kafka-3", 9092, 19095))
    [node] = topology.unnamed()
    assert (node.key, node.host, node.listen_port) == (key, "kafka-3", 9093)
