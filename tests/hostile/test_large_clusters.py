"""Clusters of thousands of nodes: what klamm does for each does not grow with their number."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from klamm.proxy.cluster.conversation import Way
from klamm.proxy.cluster.nodes.node_states import MOST_TOLD
from klamm.proxy.cluster.nodes.saved_nodes import _named as copies_to_keep
from klamm.proxy.cluster.nodes.state_file import Kept, KeptNode, read, write
from klamm.proxy.cluster.nodes.topology_changes import MOST_LINES, say_changes
from klamm.proxy.cluster.own_requests import held_connections, probe
from klamm.proxy.cluster.own_requests.broker_watch import AT_ONCE, SHOWN, BrokerWatch
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.cluster.own_requests.held_connections import MOST as MOST_HELD
from klamm.proxy.cluster.own_requests.held_connections import HeldConnections
from klamm.proxy.cluster.own_requests.probe import LOOKED_AT, Probe
from klamm.proxy.config_types import Address
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.log.lines import json_line
from klamm.proxy.session.rewriting.topology import MAX_CHANGES, Node, NodeKey, Topology
from tests.fakes.broker import Broker, Cluster
from tests.fakes.edge import Lines, cluster, edge
from tests.fakes.waiting import on_uvloop, turns

SLOTS = 20_000


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python run, and how many functions in C are called."""
    counted = 0

    def line(frame: Any, event: str, _: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return line

    def call(frame: Any, event: str, _: Any) -> None:
        nonlocal counted
        counted += event == "c_call"

    sys.setprofile(call)
    sys.settrace(line)
    try:
        work()
    finally:
        sys.settrace(None)
        sys.setprofile(None)
    return counted


def named(count: int, node_id: Callable[[int], int], before: int = 0) -> Topology:
    """All have their ports; so many others are remembered of the run before."""
    topology = Topology(20_000, 20_000 + SLOTS)
    for number in range(before):
        key = NodeKey("broker", 1_000_000 + number)
        topology.remember(Node(key, "old", 9092, 20_001 + number))
    for number in range(count):
        topology.learn("broker", node_id(number), f"kafka-{number}", 9092)
    for node in topology.unbound():
        topology.bound(node, topology.port_for(node.key))
    return topology


@pytest.mark.parametrize(
    ("node_id", "remembered"),
    [
        (lambda number: number, False),
        (lambda number: number * SLOTS, False),  # all want the first port
        (lambda number: number, True),
        (lambda number: number * SLOTS, True),
    ],
    ids=["in the range", "beyond it", "others remembered", "beyond it, others remembered"],
)
def test_ports_for_twice_as_many_nodes_take_some_two_times_the_work(
    node_id: Callable[[int], int], remembered: bool
) -> None:
    few, twice = (steps(lambda n=count: named(n, node_id, n if remembered else 0)) for count in (500, 1000))
    assert twice < 2.5 * few
    topology = named(1000, node_id, 1000 if remembered else 0)
    assert len({node.listen_port for node in topology.nodes.values()}) == 1000


def test_ports_are_given_as_one_by_one_looking_gives_them() -> None:
    """Free ports are kept in order: the next one is the port that a search over the range would find."""
    topology = Topology(100, 110)
    topology.remember(Node(NodeKey("broker", 50), "old", 1, 103))
    for node_id in (2, 12, 22, 7):
        topology.learn("broker", node_id, "kafka", node_id)
    topology.learn("controller", 7, "kafka", 9)
    for node in topology.unbound():
        topology.bound(node, topology.port_for(node.key))
    ports = {str(node.key): node.listen_port for node in topology.nodes.values()}
    assert ports == {"2": 104, "7": 108, "controller 7": 102, "12": 105, "22": 106}
    topology.bound(topology.nodes[NodeKey("broker", 12)], None, "its port is taken")
    assert topology.port_for(NodeKey("broker", 12)) == ports["12"]


def test_a_node_that_still_has_no_port_changes_nothing() -> None:
    topology = Topology(100, 101)
    for node_id in (1, 2):
        topology.learn("broker", node_id, "kafka", 1)
    without = topology.unbound()[-1]
    topology.bound(without, None, "no port is left")
    before = topology.revision
    topology.bound(without, None, "no port is left")
    assert topology.revision == before


@on_uvloop
async def test_only_some_nodes_are_dialled_at_one_time_and_only_some_are_told_one_by_one() -> None:
    topology, log = Topology(0, 0), Lines()
    for number in range(500):
        topology.learn("broker", number, f"kafka-{number}", 9092)
    watch = BrokerWatch("kafka", topology, Dialler(Way(1.0), {}), log)  # type: ignore[arg-type]
    under_way = most = asked = 0

    async def dead(address: Address) -> None:
        nonlocal under_way, most, asked
        under_way, asked = under_way + 1, asked + 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        raise OSError(f"{address} refuses connections")

    await watch.meet(dead, dead)
    assert (asked, most) == (500, AT_ONCE)
    told = [line.message for line in log.of("broker_unreachable")]
    assert len(told) == SHOWN + 1
    assert told[-1] == "450 more nodes cannot be reached: klamm_broker_up is 0 for each"


@on_uvloop
async def test_three_thousand_nodes_are_found_at_once_and_greeted_not_asked_for_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(probe, "PROBE_S", 3600.0)  # a probe asks for API versions too
    async with Broker(Cluster(), 1).listening() as broker:
        broker.cluster.nodes.update(dict.fromkeys(range(2, 3001), ("127.0.0.1", broker.port)))
        async with edge(broker) as klamm:
            assert len(broker.requests("Metadata")) == 1
            assert len(broker.requests("ApiVersions")) == 3001
            assert len(klamm.log.of("topology")) == MAX_CHANGES + 1
            more = f"{3000 - MAX_CHANGES} more nodes found or moved: /v1/brokers lists them"
            assert klamm.log.of("topology")[-1].message == more
            states = klamm.proxied.state().nodes
            assert (len(states), {state.up for state in states}) == (3000, {True})
            assert klamm.proxied.state().nodes is states
            candidates = klamm.proxied.leading.candidates()
            assert next(candidates) == (broker.host, broker.port)


@on_uvloop
async def test_the_loop_gets_turns_while_ports_are_opened() -> None:
    made = 0

    async def turn() -> None:
        nonlocal made
        while True:
            made += 1
            await asyncio.sleep(0)

    async with cluster() as (klamm, _):
        topology, ports = klamm.proxied.topology, klamm.proxied.ports
        for number in range(2, 202):
            topology.learn("broker", number, "127.0.0.1", 9)
        turning = asyncio.create_task(turn())
        before = made
        await ports.open_for_all(topology.unbound())
        turning.cancel()
        assert made - before >= 10
        assert len(ports.by_port) == 202


@on_uvloop
async def test_where_the_range_is_too_small_for_most_nodes_one_line_tells_of_the_rest() -> None:
    async with cluster() as (klamm, _):
        topology = klamm.proxied.topology
        topology.first, topology.last = 1, 1
        for number in range(2, 202):
            topology.learn("broker", number, "127.0.0.1", 9)
        await klamm.proxied.ports.open_for_all(topology.unbound())
        told = klamm.log.of("unbindable")
        assert len(told) == 51
        assert told[-1].message == "150 more nodes have no listener; choose a larger range with --listen"


@on_uvloop
async def test_a_node_that_finds_no_port_is_work_for_itself_not_for_all_others() -> None:
    async with cluster() as (klamm, _):
        topology, ports = klamm.proxied.topology, klamm.proxied.ports
        topology.first, topology.last = 1, 1

        def without_port(count: int) -> int:
            for number in range(2, count):
                topology.learn("broker", number, "127.0.0.1", 9)
            opening = ports.open_for_all(topology.unbound())

            def work() -> None:
                with contextlib.suppress(StopIteration):
                    while True:
                        opening.send(None)

            return steps(work)

        few, twice = without_port(500), without_port(1000)
        assert twice < 2.5 * few


@on_uvloop
async def test_where_no_port_is_left_nodes_with_a_port_of_their_own_get_it() -> None:
    async with cluster() as (klamm, _):
        topology, ports = klamm.proxied.topology, klamm.proxied.ports
        own = topology.nodes[NodeKey("broker", 1)].listen_port
        assert own is not None
        topology.first, topology.last = 1, 1
        for number in range(2, 52):
            topology.learn("broker", number, "127.0.0.1", 9)
        topology.pinned[51] = own
        await ports.open_for_all(topology.unbound())
        assert topology.nodes[NodeKey("broker", 51)].listen_port == own


@on_uvloop
async def test_of_very_many_nodes_those_with_a_listener_are_told_first() -> None:
    async with cluster() as (klamm, _):
        proxied = klamm.proxied
        for number in range(2, 2 * MOST_TOLD):
            proxied.topology.learn("broker", -number, "127.0.0.1", 9)
        found = proxied.state().nodes
        assert len(found) == MOST_TOLD
        assert [node.node_id for node in found if node.listening] == [1]
        keys = [node.node_id for node in found]
        assert keys == sorted(keys)
        labels = proxied.node_states.labels()
        assert len(labels) == 2 * MOST_TOLD - 1
        assert proxied.node_states.labels() is labels
        proxied.topology.learn("broker", 2, "127.0.0.1", 9)
        assert "2" in proxied.node_states.labels()


@on_uvloop
async def test_very_many_nodes_are_looked_at_once_for_connections_to_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_connections, "LOOK_S", 0.0)
    topology, looks = Topology(0, 0), 0
    for number in range(1000):
        topology.learn("broker", number, f"kafka-{number}", 9092)
    watch = BrokerWatch("kafka", topology, Dialler(Way(1.0), {}), Lines())  # type: ignore[arg-type]
    listed = watch.brokers

    def brokers() -> list[tuple[NodeKey, Address]]:
        nonlocal looks
        looks += 1
        return listed()

    monkeypatch.setattr(watch, "brokers", brokers)
    held: list[Any] = []

    def run(work: Any) -> asyncio.Task[None]:
        work.close()
        held.append(work)
        return asyncio.get_running_loop().create_task(asyncio.sleep(0))

    following = asyncio.create_task(HeldConnections(watch, watch.dialler, run).follow())
    await turns(50)
    assert (looks, len(held)) == (1, MOST_HELD)
    topology.learn("broker", 1000, "kafka-1000", 9092)
    await turns(5)
    following.cancel()
    assert looks == 2


def test_a_probe_looks_at_some_of_very_many_nodes() -> None:
    topology, looked = Topology(0, 0), 0
    watch = BrokerWatch("kafka", topology, Dialler(Way(1.0), {}), Lines())  # type: ignore[arg-type]

    def candidates() -> Iterator[Address]:
        nonlocal looked
        for number in range(100_000):
            looked += 1
            yield Address(f"kafka-{number}", 9092)

    Probe(watch.dialler, watch, candidates, lambda: False)._nodes()
    assert looked == LOOKED_AT


def test_of_nodes_without_a_port_no_copies_are_made_to_be_remembered() -> None:
    topology = named(10, lambda number: number)
    for number in range(10, 1000):
        topology.learn("broker", number, "kafka", 9092)
    assert len(copies_to_keep(topology)) == 10


def test_thirty_thousand_nodes_are_remembered(tmp_path: Any) -> None:
    nodes = [KeptNode("broker", n, f"kafka-{n}.example.org", 9092, 20_000 + n) for n in range(30_000)]
    kept = Kept(cluster="kafka", cluster_id="x", bootstrap=["kafka:9092"], nodes=nodes)
    write(tmp_path / "kafka.json", kept)
    assert read(tmp_path / "kafka.json") == kept


def test_node_ids_that_change_with_each_answer_fill_no_log() -> None:
    output, now = io.BytesIO(), [1_700_000_000.0]
    log = EventLog(output, json_line, lambda: now[0])
    topology = Topology(20_000, 20_000 + SLOTS)
    for answer in range(200):
        for node_id in range(60):
            topology.learn("broker", 60 * answer + node_id, "kafka", 9092)
        say_changes(topology, "kafka", log)
    now[0] += 61
    log.settle()
    log.close()
    lines = [json.loads(line) for line in output.getvalue().splitlines()]
    said = 200 * (MAX_CHANGES + 1)
    assert len(lines) == MOST_LINES + 1
    assert lines[-1]["suppressed"] == said - MOST_LINES
    assert lines[-1]["message"].startswith(
        f"{said - MOST_LINES} more of this kind, the last 61 s ago: 10 more"
    )


def test_a_node_that_moves_is_told_beside_as_many_that_come() -> None:
    output = io.BytesIO()
    log = EventLog(output, json_line, lambda: 1_700_000_000.0)
    topology = Topology(20_000, 20_000 + SLOTS)
    for node_id in range(1000):
        topology.learn("broker", node_id, "kafka", 9092)
        say_changes(topology, "kafka", log)
    topology.learn("broker", 7, "elsewhere", 9092)
    say_changes(topology, "kafka", log)
    log.close()
    assert "broker 7 moved from kafka:9092 to elsewhere:9092" in output.getvalue().decode()
