"""klamm holds a connection to each broker, whose end tells that the broker has died."""

from __future__ import annotations

from pathlib import Path

import pytest

from klamm.proxy.cluster import cluster as edge_of_cluster
from klamm.proxy.cluster.own_requests import held_connections
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.fakes.broker import Broker, Connection
from tests.fakes.edge import Edge, cluster
from tests.fakes.waiting import eventually, on_uvloop


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks at held connections come at once, and others not during a test."""
    monkeypatch.setattr(held_connections, "MOST", 32)
    monkeypatch.setattr(held_connections, "LOOK_S", 0.02)
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 3600.0)


def up(klamm: Edge) -> dict[int, bool | None]:
    return {node.node_id: node.up for node in klamm.proxied.state().nodes if node.kind == "broker"}


def held(broker: Broker) -> list[Connection]:
    """The open connections on which nothing was asked."""
    return [one for one in broker.connections if not one.lost and not one.received]


@on_uvloop
async def test_a_broker_that_dies_is_down_though_nobody_asks_it() -> None:
    async with cluster(3) as (klamm, brokers):
        await eventually(lambda: all(len(held(broker)) == 1 for broker in brokers))
        await brokers[1].stop()
        await eventually(lambda: up(klamm) == {1: True, 2: False, 3: True})
        [line] = await klamm.logged("broker_unreachable")
        assert line.message.startswith(f"broker 2 at {brokers[1].host}:{brokers[1].port} cannot be reached")
        await brokers[1].start(port=brokers[1].port)
        await eventually(lambda: up(klamm) == {1: True, 2: True, 3: True})
        assert len(klamm.log.of("broker_unreachable")) == 1


@on_uvloop
async def test_a_broker_that_only_ends_an_idle_connection_stays_up() -> None:
    async with cluster(1) as (klamm, [broker]):
        await eventually(lambda: len(held(broker)) == 1)
        [first] = held(broker)
        first.close()
        await eventually(lambda: held(broker) not in ([], [first]))
        assert up(klamm) == {1: True}
        assert klamm.log.bad() == []


KEEPALIVE_TIMER = "02"  # in /proc/net/tcp


def timer_of(port: int, peer: int) -> str:
    """The kind of the timer that runs for the connection from one of these ports to the other."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    ends = f":{port:04X}", f":{peer:04X}"
    [timer] = [
        row[5].partition(":")[0] for row in rows if row[1].endswith(ends[0]) and row[2].endswith(ends[1])
    ]
    return timer


@on_uvloop
async def test_the_kernel_looks_whether_the_host_is_still_there() -> None:
    async with cluster(1) as (_, [broker]):
        await eventually(lambda: len(held(broker)) == 1)
        port = held(broker)[0].transport.get_extra_info("peername")[1]
        assert timer_of(port, broker.port) == KEEPALIVE_TIMER


@on_uvloop
async def test_a_broker_that_has_left_is_held_no_more() -> None:
    async with cluster(2) as (klamm, [one, two]):
        await eventually(lambda: held(one) and held(two))
        topology = klamm.proxied.topology
        topology.forget(topology.nodes[NodeKey("broker", 2)], "it has left")
        await eventually(lambda: not held(two))
        assert held(one)
