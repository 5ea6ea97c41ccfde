"""The port of each node."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.proxy.session.rewriting.topology import MAX_CHANGES, NodeKey, Topology

FIRST, LAST = 20000, 20100
SLOTS = 20  # few, so that ids meet
KEYS = st.builds(
    NodeKey,
    st.sampled_from(["broker", "controller"]),
    st.one_of(st.integers(0, 50), st.integers(0, 2**31 - 1)),
)


def bound(topology: Topology, *keys: tuple[str, int]) -> dict[tuple[str, int], int]:
    """Learn them in this order, and bind as the edge does."""
    for kind, node_id in keys:
        topology.learn(kind, node_id, "kafka", 9092)  # type: ignore[arg-type]
    for node in topology.unbound():
        topology.bound(node, topology.port_for(node.key))
    return {tuple(key): node.listen_port or 0 for key, node in topology.nodes.items()}


def brokers(*ids: int) -> list[tuple[str, int]]:
    return [("broker", node_id) for node_id in ids]


def test_a_broker_is_found_at_the_first_port_plus_1_plus_its_id() -> None:
    ports = bound(Topology(FIRST, LAST), *brokers(0, 1, 7, 99))
    assert ports == {("broker", 0): 20001, ("broker", 1): 20002, ("broker", 7): 20008, ("broker", 99): 20100}


def test_a_range_is_used_to_its_last_port() -> None:
    topology = Topology(FIRST, FIRST + 3)
    assert sorted(bound(topology, *brokers(0, 1, 2)).values()) == [20001, 20002, 20003]
    topology.learn("broker", 3, "kafka", 9092)
    with pytest.raises(LookupError, match="no port is left for it in 20000-20003"):
        topology.port_for(NodeKey("broker", 3))


def test_controllers_count_down_from_the_end() -> None:
    ports = bound(
        Topology(FIRST, LAST), ("broker", 1), ("controller", 1), ("controller", 0), ("broker", 3000)
    )
    assert ports == {
        ("broker", 1): 20002,
        ("controller", 1): 20099,
        ("controller", 0): 20100,
        ("broker", 3000): 20001,
    }


def test_large_and_sparse_ids_have_the_port_of_their_remainder() -> None:
    ids = (2**31 - 1, 1001, 5_000_000)
    assert bound(Topology(FIRST, LAST), *brokers(*ids)) == {
        ("broker", node_id): FIRST + 1 + node_id % 100 for node_id in ids
    }


def test_where_two_ids_meet_the_later_one_has_the_next_port_and_is_not_stable() -> None:
    topology = Topology(FIRST, LAST)
    assert bound(topology, *brokers(5, 105, 6)) == {
        ("broker", 5): 20006,
        ("broker", 6): 20007,
        ("broker", 105): 20008,
    }
    assert [key.node_id for key, node in topology.nodes.items() if not topology.is_stable(node)] == [105]


@pytest.mark.parametrize("order", [(1, 101, 201, 2), (201, 2, 101, 1), (2, 1, 201, 101)])
def test_ports_do_not_depend_on_the_order_in_which_nodes_were_named(order: tuple[int, ...]) -> None:
    assert bound(Topology(FIRST, LAST), *brokers(*order)) == bound(
        Topology(FIRST, LAST), *brokers(1, 2, 101, 201)
    )


def test_pinned_ports_come_first_and_are_stable() -> None:
    topology = Topology(FIRST, LAST, {7: 20002, 8: 30000})
    ports = bound(topology, *brokers(1, 7, 8))
    assert ports == {("broker", 7): 20002, ("broker", 8): 30000, ("broker", 1): 20003}
    assert [node.key.node_id for node in topology.nodes.values() if not topology.is_stable(node)] == [1]


def test_a_pinned_port_is_of_the_broker_and_not_of_the_controller_with_its_id() -> None:
    assert bound(Topology(FIRST, LAST, {1: 30000}), ("broker", 1), ("controller", 1)) == {
        ("broker", 1): 30000,
        ("controller", 1): 20099,
    }


def test_a_range_from_0_asks_for_any_port() -> None:
    topology = Topology(0, 0)
    assert bound(topology, *brokers(1, 2, 10**9)) == {("broker", node_id): 0 for node_id in (1, 2, 10**9)}
    assert all(topology.is_stable(node) for node in topology.nodes.values())


@pytest.mark.parametrize("last", [FIRST, FIRST - 1])
def test_a_range_of_no_port_has_room_for_pinned_nodes_only(last: int) -> None:
    topology = Topology(FIRST, last, {1: 30000})
    assert topology.port_for(NodeKey("broker", 1)) == 30000
    assert topology.unbound() == []
    with pytest.raises(LookupError):
        topology.port_for(NodeKey("broker", 2))


def test_a_node_that_moves_keeps_its_port_and_what_was_rewritten_is_no_longer_right() -> None:
    topology = Topology(FIRST, LAST)
    bound(topology, ("broker", 1))
    before = topology.revision
    topology.learn("broker", 1, "kafka", 9092)
    assert topology.revision == before
    node = topology.learn("broker", 1, "::1", 9093)
    assert (topology.revision, node.listen_port) == (before + 1, 20002)
    assert [what for _, what in topology.changes] == [
        "broker 1 found at kafka:9092",
        "broker 1 moved from kafka:9092 to [::1]:9093",
    ]


def test_a_node_without_a_listener_is_tried_again() -> None:
    topology = Topology(FIRST, LAST)
    node = topology.learn("broker", 1, "kafka", 9092)
    topology.bound(node, None, "its port is taken")
    assert topology.unbound() == [node]
    topology.bound(node, 20002)
    assert (topology.unbound(), node.failure) == ([], None)


def test_changes_that_nobody_reads_and_topic_ids_are_bounded() -> None:
    topology = Topology(FIRST, LAST, max_topic_ids=10)
    for number in range(2 * MAX_CHANGES):
        topology.learn("broker", 1, "kafka", number)
        topology.learn_topic(number.to_bytes(16, "big"), f"topic-{number}")
    assert len(topology.changes) == MAX_CHANGES
    assert len(topology.topic_names) == 10


def test_a_topic_that_gets_another_name_is_known_by_it() -> None:
    topology = Topology(FIRST, LAST, max_topic_ids=2)
    topology.learn_topic(bytes(16), "a")
    before = topology.names_revision
    topology.learn_topic(bytes(16), "a")
    assert topology.names_revision == before
    topology.learn_topic(bytes(16), "b")
    assert (topology.topic_names[bytes(16)], topology.names_revision) == ("b", before + 1)


def run(before: Topology | None, pinned: dict[int, int], rounds: list[list[NodeKey]]) -> Topology:
    """One run of klamm, in which nodes are named in rounds; the one before it is remembered."""
    topology = Topology(FIRST, FIRST + SLOTS, pinned)
    for node in [] if before is None else [*before.nodes.values(), *before.unnamed()]:
        topology.remember(node)
    for keys in rounds:
        for key in keys:
            topology.learn(*key, "kafka", 9092)
        for node in topology.unbound():
            topology.bound(node, topology.port_for(node.key))
    return topology


def ports(topology: Topology) -> dict[NodeKey, int | None]:
    return {key: node.listen_port for key, node in topology.nodes.items()}


@given(st.data())
def test_any_nodes_in_any_order_have_their_ports_again_after_any_restarts(data: st.DataObject) -> None:
    keys = data.draw(st.lists(KEYS, unique=True, min_size=1, max_size=SLOTS - 2))
    pins = data.draw(st.lists(st.sampled_from(keys), unique=True, max_size=2))
    pinned = {key.node_id: 30000 + place for place, key in enumerate(pins) if key.kind == "broker"}
    first = run(None, pinned, [keys[place::3] for place in range(3)])
    expected = ports(first)
    assert len(set(expected.values())) == len(keys)
    before = first
    for _ in range(3):
        some = data.draw(st.permutations(keys))
        cut = data.draw(st.integers(0, len(some)))
        # Nodes that nobody names in a run are remembered through it.
        before = run(before, pinned, [some[:cut:2], some[1:cut:2]])
        assert ports(before).items() <= expected.items()
        assert {node.key: node.listen_port for node in before.unnamed()}.items() <= expected.items()
    assert ports(run(before, pinned, [list(reversed(keys))])) == expected


def test_a_remembered_node_that_nobody_names_gives_its_port_away_when_no_other_is_left() -> None:
    topology = Topology(FIRST, FIRST + 2)
    for node in run(None, {}, [[NodeKey("broker", 0)]]).nodes.values():
        topology.remember(node)
    assert bound(topology, *brokers(2)) == {("broker", 2): FIRST + 2}
    assert [node.key.node_id for node in topology.unnamed()] == [0]
    assert bound(topology, *brokers(1))[("broker", 1)] == FIRST + 1
    assert topology.unnamed() == []


@pytest.mark.parametrize(("port", "kind"), [(FIRST, "broker"), (LAST + 1, "broker"), (30000, "controller")])
def test_a_remembered_port_that_the_configuration_leaves_no_more_is_forgotten(
    port: int, kind: Literal["broker", "controller"]
) -> None:
    old = Topology(0, 0)
    node = old.learn(kind, 1, "kafka", 9092)
    old.bound(node, port)
    topology = Topology(FIRST, LAST, {7: 30000})
    topology.remember(node)
    assert topology.unnamed() == []


def test_a_node_that_is_pinned_since_has_the_pinned_port() -> None:
    topology = Topology(FIRST, LAST, {1: 30000})
    for node in run(None, {}, [[NodeKey("broker", 1)]]).nodes.values():
        topology.remember(node)
    assert topology.ahead(whole_range=False) == {30000: NodeKey("broker", 1)}
    assert bound(topology, *brokers(1)) == {("broker", 1): 30000}


def listed(topology: Topology, *ids: int) -> dict[int, int]:
    """The ports of these brokers, which are all that the cluster names now."""
    topology.learn_all({NodeKey("broker", node_id): ("kafka", 9092) for node_id in ids})
    ports = bound(topology)
    return {node_id: ports["broker", node_id] for node_id in ids}


def test_in_a_full_range_the_port_of_the_broker_that_is_gone_for_longest_is_taken() -> None:
    topology = Topology(FIRST, FIRST + 4)
    ports = listed(topology, 0, 1, 2)
    listed(topology, 0, 1, 3)
    revision = topology.revision
    assert listed(topology, 0, 3, 4) == {0: ports[0], 3: 20004, 4: ports[2]}
    assert topology.revision > revision
    assert sorted(key.node_id for key in topology.nodes) == [0, 1, 3, 4]
    assert (NodeKey("broker", 2), "broker 2 is gone: port 20003 is another's now") in topology.changes
    assert listed(topology, 2, 3, 4) == {2: ports[1], 3: 20004, 4: ports[2]}


def test_brokers_that_are_named_and_controllers_and_pinned_ports_keep_their_ports() -> None:
    topology = Topology(FIRST, FIRST + 4, {7: FIRST + 4})
    listed(topology, 7, 0)
    bound(topology, ("controller", 1))
    listed(topology, 0, 1)
    with pytest.raises(LookupError, match="no port is left"):
        listed(topology, 0, 1, 2)


@given(st.lists(st.sets(st.integers(0, 2**31 - 1), max_size=4), max_size=40))
def test_ids_that_always_change_have_ports_of_their_own_as_long_as_they_are_named(
    ids: list[set[int]],
) -> None:
    topology = Topology(FIRST, FIRST + 4)
    for each in ids:
        ports = listed(topology, *each)
        assert len(set(ports.values())) == len(each)
        assert listed(topology, *each) == ports
