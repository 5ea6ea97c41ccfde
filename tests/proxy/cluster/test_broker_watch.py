"""The state of brokers, by attempts to connect; and the answers that are lost with a connection."""

from __future__ import annotations

from time import monotonic

import pytest

from klamm.proxy.cluster import cluster as edge_of_cluster
from klamm.proxy.cluster.own_requests import broker_watch
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.fakes.broker import Broker, Cluster, closes
from tests.fakes.client import connect
from tests.fakes.edge import Edge, cluster
from tests.fakes.waiting import eventually, on_uvloop, turns

BEAT = {"group_id": "g"}


def up(klamm: Edge) -> dict[int, bool | None]:
    return {node.node_id: node.up for node in klamm.proxied.state().nodes}


@on_uvloop
async def test_a_broker_is_up_once_klamm_has_connected_to_it() -> None:
    async with cluster(2) as (klamm, _):
        assert up(klamm) == {1: True, 2: True}
        klamm.proxied.topology.learn("broker", 3, "127.0.0.1", 1)
        assert up(klamm) == {1: True, 2: True, 3: None}


@on_uvloop
async def test_a_client_that_is_led_to_a_dead_broker_shows_that_it_is_down_and_up_again() -> None:
    async with cluster(2) as (klamm, [_, second]):
        await second.stop()
        assert up(klamm)[2]  # nobody has tried yet
        assert await (await klamm.client(2)).ended() == "RST"
        assert up(klamm) == {1: True, 2: False}
        assert klamm.stats.problems["kafka", "2", "", "broker_unreachable"] == 1
        [line] = klamm.log.of("broker_unreachable")
        assert line.fields["broker"] == "2"
        assert klamm.proxied.readiness.ready  # which says nothing of one broker
        await second.start(port=second.port)
        assert (await (await klamm.client(2)).ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert up(klamm) == {1: True, 2: True}
        [line] = klamm.log.of("broker_reachable")
        where = f"127.0.0.1:{second.port}"
        assert (line.level, line.message) == ("info", f"broker 2 at {where} can be reached again")


@on_uvloop
async def test_klamm_sees_a_broker_die_and_come_back_without_any_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 0.02)
    async with cluster(2) as (klamm, [first, second]):
        await second.stop()
        [line] = await klamm.logged("broker_unreachable")
        assert (line.fields["broker"], up(klamm)) == ("2", {1: True, 2: False})
        where = f"127.0.0.1:{second.port}"
        assert line.message == f"broker 2 at {where} cannot be reached any more: {where} refuses connections"
        await looks(first, 3)
        assert len(klamm.log.of("broker_unreachable")) == 1  # said as it changes
        await second.start(port=second.port)
        await klamm.logged("broker_reachable")
        assert up(klamm) == {1: True, 2: True}


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """So many seconds are added to the clock of the watch, which looks all the time."""
    seconds = [0.0]
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 0.02)
    monkeypatch.setattr(broker_watch, "monotonic", lambda: monotonic() + seconds[0])
    return seconds


@on_uvloop
async def test_a_broker_that_was_taken_out_of_the_cluster_is_forgotten_after_an_hour(
    later: list[float],
) -> None:
    async with cluster(3) as (klamm, [first, second, _]):
        port = klamm.port_of(2)
        await second.stop()
        await klamm.logged("broker_unreachable")
        later[0] = broker_watch.GONE_S
        await looks(first, 3)
        assert up(klamm) == {1: True, 2: False, 3: True}  # the cluster still names it
        place = first.cluster.nodes.pop(2)
        first.cluster.nodes.pop(3)
        await eventually(lambda: up(klamm) == {1: True, 2: None, 3: True})  # 3 can be reached
        gone = "broker 2 is gone: it has not been reached for 60 minutes, and no answer names it any more"
        await eventually(lambda: gone in [line.message for line in klamm.log.of("topology")])
        client = await connect("127.0.0.1", port)  # is led to another broker
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        client.transport.abort()
        assert up(klamm) == {1: True, 2: None, 3: True}
        first.cluster.nodes[2] = place
        await second.start(port=second.port)
        await eventually(lambda: up(klamm) == {1: True, 2: True, 3: True})
        assert klamm.port_of(2) == port


@on_uvloop
async def test_a_broker_that_is_not_named_for_less_than_an_hour_is_down(
    later: list[float],
) -> None:
    async with cluster(2) as (klamm, [first, second]):
        await second.stop()
        first.cluster.nodes.pop(2)
        await klamm.logged("broker_unreachable")
        later[0] = broker_watch.GONE_S - 100
        await looks(first, 3)
        assert up(klamm) == {1: True, 2: False}
        await second.start(port=second.port)
        await klamm.logged("broker_reachable")
        await second.stop()
        await eventually(lambda: not up(klamm)[2])
        later[0] += 200  # the hour counts from when it was lost last
        await looks(first, 3)
        assert up(klamm) == {1: True, 2: False}


@on_uvloop
async def test_a_broker_that_accepts_and_does_not_answer_is_down_whoever_connects_to_it() -> None:
    async with cluster(2, connect_timeout_s=0.5) as (klamm, [_, second]):
        second.on_data = lambda connection, data: None
        await klamm.proxied.watch.look(0, klamm.proxied.asking.greet)
        [line] = klamm.log.of("broker_unreachable")
        where = f"127.0.0.1:{second.port}"
        silent = f"{where} accepts connections and does not answer within 1 s"
        assert line.message == f"broker 2 at {where} cannot be reached any more: {silent}"
        made = len(second.connections)
        (await klamm.client(2)).send("Heartbeat", 4, BEAT)
        await second.until(lambda: len(second.connections) > made)
        assert up(klamm) == {1: True, 2: False}
        second.on_data = None
        await klamm.proxied.watch.look(0, klamm.proxied.asking.greet)
        assert up(klamm) == {1: True, 2: True}
        assert len(klamm.log.of("broker_reachable")) == 1


@on_uvloop
async def test_a_broker_that_closes_on_api_versions_as_0_8_does_is_up() -> None:
    async with cluster() as (klamm, [broker]):
        broker.answers["ApiVersions"] = closes
        await klamm.proxied.watch.look(0, klamm.proxied.asking.greet)
        assert up(klamm) == {1: True}
        assert klamm.log.of("broker_unreachable") == []


async def looks(broker: Broker, times: int) -> None:
    """Wait for that many refreshes."""
    await broker.asked("Metadata", len(broker.requests("Metadata")) + times)


@on_uvloop
async def test_klamm_asks_no_broker_that_it_has_asked_lately() -> None:
    async with cluster(2) as (klamm, [first, second]):
        made = len(first.connections), len(second.connections)
        await klamm.proxied.watch.look(3600, klamm.proxied.asking.greet)
        assert (len(first.connections), len(second.connections)) == made
        await klamm.proxied.watch.look(0, klamm.proxied.asking.greet)
        await first.until(lambda: len(first.connections) == made[0] + 1)
        await second.until(lambda: len(second.connections) == made[1] + 1)


@on_uvloop
async def test_what_klamm_remembers_of_addresses_does_not_grow_as_nodes_move() -> None:
    async with cluster(1) as (klamm, _):
        watch = klamm.proxied.watch
        for port in range(1, 100):
            klamm.proxied.topology.learn("broker", 2, "127.0.0.1", port)
            await watch.meet(watch.dial)
        await watch.look(3600, watch.dial)
        assert len(watch.attempts) == len(watch.dialled) == 2
        assert up(klamm) == {1: True, 2: False}


@on_uvloop
async def test_a_controller_is_dialled_only_after_a_client_was_led_to_it() -> None:
    async with cluster() as (klamm, [broker]):
        async with Broker(Cluster(), 1).listening() as controller:
            broker.cluster.controllers[1] = (controller.host, controller.port)
            await (await klamm.client(1)).ask("DescribeCluster", 1, {"endpoint_type": 2})
            watch, key = klamm.proxied.watch, NodeKey("controller", 1)
            node = klamm.proxied.topology.nodes[key]
            await watch.meet(watch.dial)
            await watch.look(0, watch.dial)
            assert (watch.up(node), controller.connections) == (None, [])
            client = await klamm.client(1, kind="controller")
            await client.ask("Heartbeat", 4, BEAT)
            assert watch.up(node)
        await watch.look(0, watch.dial)
        assert watch.up(node) is False
        [line] = klamm.log.of("broker_unreachable")
        assert line.message.startswith("controller 1 at ")
        assert line.fields["broker"] == "controller 1"


def lost(klamm: Edge) -> dict[tuple[str, str, str, str, str], int]:
    return dict(klamm.stats.unanswered)


@on_uvloop
async def test_requests_that_nobody_answered_are_counted_with_why_their_connection_ended() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        del broker.answers["Heartbeat"]
        for _ in range(3):
            client.send("Heartbeat", 4, BEAT)
        client.send("Produce", 9, {"acks": 0, "topic_data": []})
        await broker.asked("Produce")
        broker.connections[-1].reset()
        await client.ended()
        await klamm.empty()
        assert lost(klamm) == {("kafka", "1", "Heartbeat", "app", "reset by broker"): 3}
        [counters] = [one for one in klamm.stats.requests.values() if one.api == "Produce"]
        assert (counters.requests, counters.one_way) == (1, 1)


@on_uvloop
async def test_an_answer_that_came_is_not_lost() -> None:
    async with cluster() as (klamm, _):
        client = await klamm.client(1)
        for _ in range(5):
            client.send("Heartbeat", 4, BEAT)
        for _ in range(5):
            await client.answer("Heartbeat", 4)
        client.send("Heartbeat", 4, BEAT)
        await client.answer("Heartbeat", 4)
        client.close()
        await klamm.empty()
        assert lost(klamm) == {}


@on_uvloop
async def test_a_client_that_leaves_its_last_fetch_behind_is_told_apart_by_the_reason() -> None:
    async with cluster() as (klamm, [broker]):
        broker.answers["Fetch"] = lambda connection, request: None
        client = await klamm.client(1)
        client.send("Fetch", 12, {"topics": []})
        await broker.asked("Fetch")
        client.close()
        await klamm.empty()
        assert lost(klamm) == {("kafka", "1", "Fetch", "app", "closed by client"): 1}


@on_uvloop
async def test_an_answer_that_klamm_itself_owed_is_not_the_brokers_to_lose() -> None:
    async with cluster() as (klamm, [broker]):
        klamm.rule("  - {api: Heartbeat, error: REBALANCE_IN_PROGRESS}")
        del broker.answers["Metadata"]
        client = await klamm.client(1)
        client.send("Metadata", 12, {"topics": []})
        client.send("Heartbeat", 4, BEAT)
        await broker.asked("Metadata")
        await eventually(lambda: [link.session.pending() for link in klamm.proxied.links] == [2])
        await turns()
        client.close()
        await klamm.empty()
        assert lost(klamm) == {("kafka", "1", "Metadata", "app", "closed by client"): 1}


@on_uvloop
async def test_a_request_that_klamm_answers_itself_is_counted_and_the_broker_does_not_see_it() -> None:
    async with cluster() as (klamm, [broker]):
        klamm.rule("  - {api: Heartbeat, error: REBALANCE_IN_PROGRESS, times: 1}")
        client = await klamm.client(1)
        assert [(await client.ask("Heartbeat", 4, BEAT))["error_code"] for _ in range(2)] == [27, 0]
        [counters] = [one for one in klamm.stats.requests.values() if one.client_id == "app"]
        assert (counters.own_answers, dict(counters.own_errors), dict(counters.errors)) == (1, {27: 1}, {})
        assert len(broker.requests("Heartbeat")) == 1
