"""From the first question to the refresh: clusters that are down, want SASL, speak TLS, grow, or change."""

from __future__ import annotations

import asyncio
import io
import socket
from collections.abc import Callable
from typing import Any

import pytest

from klamm.cli.running.banner import banner
from klamm.proxy.cluster import cluster as edge_of_cluster
from klamm.proxy.cluster.own_requests import asking, probe
from klamm.proxy.config_types import Listen
from klamm.proxy.greeting import Greeting
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.fakes.broker import Broker, Cluster, Connection, Request, api_versions, closes, metadata
from tests.fakes.edge import cluster, edge, proxied, started
from tests.fakes.waiting import eventually, on_uvloop, turns

ALL = {"topics": []}
SECOND = NodeKey("broker", 2)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries and looks come at once."""
    monkeypatch.setattr(asking, "RETRY_FIRST_S", 0.01)
    monkeypatch.setattr(asking, "RETRY_LAST_S", 0.02)
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 0.02)
    monkeypatch.setattr(probe, "PROBE_S", 0.02)


@on_uvloop
async def test_a_cluster_that_is_down_is_said_once_and_asked_again_until_it_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = server.getsockname()
    made, log = proxied([where])
    async with started(made, log, ready=False) as klamm:
        [line] = await klamm.logged("unreachable")
        message = f"no bootstrap server answers: 127.0.0.1:{where[1]} refuses connections"
        assert (line.level, line.message) == ("error", f"{message}; trying again")
        state = made.state()
        assert (state.ready, state.reason) == (False, message)
        await asyncio.sleep(0.1)
        assert len(log.lines) == 1
        async with Broker(Cluster(), 1).listening(port=where[1]):
            await made.announced.wait()
            assert (made.state().ready, made.state().reason) == (True, "")
            assert (await (await klamm.client()).ask("Heartbeat", 4, {}))["error_code"] == 0


@on_uvloop
async def test_a_host_that_takes_connections_and_is_silent_is_named_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "SILENT_S", 0.02)
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers.clear()
        made, log = proxied(broker, connect_timeout_s=0.1)
        async with started(made, log, ready=False) as klamm:
            [line] = await klamm.logged("waiting")
            where = f"{broker.host}:{broker.port}"
            assert line.message == f"{where} has not answered for 0.02 s; klamm waits for it"
            [refused] = (await klamm.logged("unreachable"))[:1]
            assert f"{where} accepts connections and does not answer within 0.2 s" in refused.message
            await broker.asked("ApiVersions", 3)
            assert len(log.of("waiting")) == 1


@on_uvloop
async def test_a_controller_is_named_as_one_with_what_to_give_instead() -> None:
    nodes = Cluster(hidden={"Metadata"}, controllers={3000: ("127.0.0.1", 1)})
    async with Broker(nodes, 3000).listening() as controller:
        async with edge(controller) as klamm:
            [line] = klamm.log.of("controller")
            where = f"{controller.host}:{controller.port}"
            assert line.message == (
                f"{where} is a controller, which serves no producers or consumers and names no brokers: "
                "give klamm a broker's address, as in its advertised.listeners"
            )
            state = klamm.proxied.state()
            assert (state.controllers_only, state.ready) == (True, True)
            text = banner(Greeting([state], False, None, None, "", None))
            assert f"bootstrap.controllers={state.listening}" in text
            assert "bootstrap.servers" not in text
            assert "give klamm a broker's address" in text


@on_uvloop
async def test_a_broker_is_asked_rather_than_a_controller_that_is_named_before_it() -> None:
    nodes = Cluster(hidden={"Metadata"}, controllers={3000: ("127.0.0.1", 1)})
    async with Broker(nodes, 3000).listening() as controller, Broker(Cluster(), 1).listening() as broker:
        async with edge([(one.host, one.port) for one in (controller, broker)]) as klamm:
            assert klamm.log.of("controller") == []
            state = klamm.proxied.state()
            assert [node.node_id for node in state.nodes if node.kind == "broker"] == [1]
            assert not state.controllers_only
            assert (await (await klamm.client()).ask("Heartbeat", 4, {}))["error_code"] == 0


@on_uvloop
async def test_nobody_is_let_in_before_the_cluster_has_answered() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        held: list[Callable[[], None]] = []

        def later(connection: Connection, request: Request) -> None:
            held.append(lambda: connection.answer(request))

        broker.answers["Metadata"] = later
        made, log = proxied(broker)
        async with started(made, log, ready=False):
            await broker.until(lambda: held)
            assert not made.ports.by_port
            assert not made.readiness.ready
            broker.answers["Metadata"] = metadata
            held[0]()
            await made.announced.wait()
            targets = {listener.target for listener in made.ports.by_port.values()}
            assert targets == {None, NodeKey("broker", 1)}


@on_uvloop
async def test_clients_come_after_a_while_though_klamm_gets_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge_of_cluster, "LET_IN_S", 0.05)
    async with Broker(Cluster(), 1).listening() as broker:

        def for_clients(connection: Connection, request: Request) -> dict[str, Any] | None:
            return None if request.client_id == "klamm" else metadata(connection, request)

        broker.answers["Metadata"] = for_clients
        made, log = proxied(broker)
        async with started(made, log, ready=False) as klamm:
            [line] = await klamm.logged("not_found")
            assert line.message == (
                "the cluster has not answered klamm yet. Clients may come to "
                f"{made.listening()}, and are led to its bootstrap servers; no node is known"
            )
            state = made.state()
            assert (state.state, state.ready, state.nodes) == ("degraded", False, ())
            answer = await (await klamm.client()).ask("Metadata", 12, ALL)
            [row] = answer["brokers"]
            assert row["port"] == klamm.port_of(1) != broker.port
            assert not made.announced.is_set()
            broker.answers["Metadata"] = metadata
            await made.announced.wait()
            assert (made.state().state, made.topology.cluster_id) == ("ready", "fake-cluster")
            assert row["port"] == klamm.port_of(1)


@on_uvloop
async def test_a_bootstrap_port_that_is_taken_is_said_though_no_cluster_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(edge_of_cluster, "LET_IN_S", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as closed:
        where = closed.getsockname()
        closed.close()
        listen = Listen("127.0.0.1", taken.getsockname()[1])
        made, _ = proxied([where], listen=listen)
        with pytest.raises(OSError, match=r"cannot listen on .* choose other ports with --listen"):
            await made.follow()


@on_uvloop
async def test_a_bootstrap_address_of_another_machine_is_called_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_of_cluster, "LET_IN_S", 0.05)
    made, _ = proxied([("127.0.0.1", 9)], listen=Listen("192.0.2.1", 20000))
    with pytest.raises(OSError, match=r"cannot listen on .* choose an address of this machine with --listen"):
        await made.follow()


@on_uvloop
async def test_a_server_that_does_not_answer_api_versions_3_is_served_and_named() -> None:
    async with Broker(Cluster(), 1).listening() as broker:

        def old(connection: Connection, request: Request) -> dict[str, Any] | bytes | None:
            return api_versions(connection, request) if request.version < 3 else None

        broker.answers["ApiVersions"] = old
        made, log = proxied(broker, connect_timeout_s=0.5)
        async with started(made, log) as klamm:
            where = f"{broker.host}:{broker.port}"
            [line] = await klamm.logged("silent")
            assert line.message == (
                f"{where} does not answer ApiVersions 3, but ApiVersions 0: clients that ask so wait until "
                "their timeout"
            )
            client = await klamm.client()
            assert {row["api_key"] for row in (await client.ask("ApiVersions", 2, {}))["api_keys"]} >= {3, 18}
            await eventually(lambda: made.probes)
            assert made.state().state == "ready"
            broker.answers["ApiVersions"] = api_versions
            [_, line] = await klamm.logged("silent", 2)
            assert line.message == f"{where} answers ApiVersions 3 now"


@on_uvloop
async def test_the_wait_between_two_attempts_grows_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float, result: Any = None) -> Any:
        slept.append(delay)
        return await sleep(0)

    monkeypatch.setattr(asking, "RETRY_FIRST_S", 0.5)
    monkeypatch.setattr(asking, "RETRY_LAST_S", 15.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = server.getsockname()
    made, log = proxied([where])
    monkeypatch.setattr("klamm.proxy.cluster.cluster.asyncio.sleep", noted)
    async with started(made, log, ready=False):
        async with asyncio.timeout(5):
            while len(slept) < 8:
                await sleep(0.001)
    assert slept[:8] == [0.5, 1, 2, 4, 8, 15, 15, 15]


@on_uvloop
async def test_one_bootstrap_server_of_several_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        dead = server.getsockname()
    async with Broker(Cluster(), 1).listening() as broker:
        async with edge([dead, ("nowhere.invalid", 9092), (broker.host, broker.port)]) as klamm:
            assert klamm.log.bad() == []
            client = await klamm.client()
            assert (await client.ask("Heartbeat", 4, {}))["error_code"] == 0


@on_uvloop
async def test_every_bootstrap_server_that_fails_is_named() -> None:
    async with Broker(Cluster(), 1).listening() as closing:
        closing.on_connect = Connection.close
        with socket.create_server(("127.0.0.1", 0)) as server:
            dead = server.getsockname()
        made, log = proxied([dead, (closing.host, closing.port)])
        async with started(made, log, ready=False) as klamm:
            [line] = (await klamm.logged("unreachable"))[:1]
            assert f"127.0.0.1:{dead[1]} refuses connections; 127.0.0.1:{closing.port} closes" in line.message


@on_uvloop
async def test_sasl_passes_through_and_brokers_are_learned_from_what_clients_are_told() -> None:
    def known(connection: Connection, request: Request) -> dict[str, Any] | None:
        if any(one.name == "SaslAuthenticate" for one in connection.requests):
            return metadata(connection, request)
        return closes(connection, request)

    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Metadata"] = known
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 0, "mechanisms": ["PLAIN"]}
        broker.answers["SaslAuthenticate"] = lambda *_: {"error_code": 0}
        async with edge(broker) as klamm:
            [line] = klamm.log.bad()
            assert line.kind == "sasl"
            assert "GSSAPI" not in line.message  # the broker does not offer it
            assert klamm.proxied.state().nodes == ()
            client = await klamm.client()
            await client.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
            await client.ask("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0secret"})
            [row] = (await client.ask("Metadata", 12, ALL))["brokers"]
            assert (row["host"], row["port"]) == ("127.0.0.1", klamm.port_of(1))
            follower = await klamm.client(1)
            await follower.ask("Heartbeat", 4, {})
            asked = len(broker.requests("Metadata"))
            await eventually(lambda: klamm.proxied.watch.dialled)
            assert len(broker.requests("Metadata")) == asked  # klamm itself does not ask again


@on_uvloop
async def test_host_bound_mechanisms_are_warned_about() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["Metadata"] = closes
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 33, "mechanisms": ["PLAIN", "GSSAPI"]}
        async with edge(broker) as klamm:
            [line] = klamm.log.bad()
            assert "(GSSAPI) fail behind another name" in line.message


@on_uvloop
async def test_a_broker_whose_advertised_name_leads_nowhere_names_the_map_option() -> None:
    nodes = Cluster()
    async with Broker(nodes, 1).listening() as broker:
        nodes.nodes |= {2: ("kafka-2.invalid", 9092), 3: ("127.0.0.1", 1)}
        async with edge(broker) as klamm:
            found = await klamm.logged("broker_unreachable", 2)
            lines = {line.message.split(",")[0]: line.message for line in found}
            assert sorted(lines) == ["broker 2", "broker 3"]
            assert "--map kafka-2.invalid:9092=HOST:PORT" in lines["broker 2"]
            assert "refuses connections; if klamm reaches it elsewhere, say --map 127" in lines["broker 3"]


@on_uvloop
async def test_every_broker_is_tried_once_and_a_new_address_once_more() -> None:
    async with cluster(1) as (klamm, [broker]):
        broker.cluster.nodes[2] = ("127.0.0.1", 1)
        await klamm.logged("broker_unreachable")
        broker.cluster.nodes[2] = ("127.0.0.1", 2)
        await klamm.logged("broker_unreachable", 2)
        await looks(broker, 3)
        assert len(klamm.log.of("broker_unreachable")) == 2


async def looks(broker: Broker, times: int) -> None:
    """Wait for that many refreshes."""
    await broker.asked("Metadata", len(broker.requests("Metadata")) + times)


@on_uvloop
async def test_nodes_that_come_are_bound_and_nodes_that_move_are_followed() -> None:
    async with cluster(1) as (klamm, [broker]):
        broker.cluster.nodes[2] = ("kafka-2", 9092)
        await eventually(lambda: SECOND in klamm.proxied.topology.nodes)
        await eventually(lambda: klamm.proxied.topology.nodes[SECOND].listen_port)
        port = klamm.port_of(2)
        broker.cluster.nodes[2] = ("kafka-2", 9093)
        await eventually(lambda: klamm.proxied.topology.nodes[SECOND].port == 9093)
        assert klamm.port_of(2) == port
        messages = [line.message for line in await klamm.logged("topology", 3)]
        moved = "broker 2 moved from kafka-2:9092 to kafka-2:9093"
        assert messages[1:] == ["broker 2 found at kafka-2:9092", moved]


@on_uvloop
async def test_a_cluster_that_stops_answering_is_said_once_and_so_is_its_return() -> None:
    async with cluster(1) as (klamm, [broker]):
        await broker.stop()
        await klamm.logged("unreachable")
        assert not klamm.proxied.state().ready
        await asyncio.sleep(0.1)
        assert len(klamm.log.of("unreachable")) == 1
        await broker.start(port=broker.port)
        await klamm.logged("reachable")
        assert (klamm.proxied.state().ready, klamm.proxied.state().reason) == (True, "")


@on_uvloop
async def test_another_cluster_behind_the_same_bootstrap_is_said() -> None:
    async with cluster(1) as (klamm, [broker]):
        broker.cluster.cluster_id = "another"
        [line] = (await klamm.logged("cluster_changed"))[:1]
        assert line.level == "error"
        assert line.message == "the bootstrap servers lead to cluster another; before it was fake-cluster"
        await looks(broker, 2)
        assert len(klamm.log.of("cluster_changed")) == 1


@on_uvloop
async def test_a_defect_in_a_look_is_said_and_the_next_look_comes() -> None:
    async with cluster(1) as (klamm, [broker]):

        async def fails() -> None:
            raise ZeroDivisionError

        bind, klamm.proxied.bind = klamm.proxied.bind, fails  # type: ignore[method-assign]
        [line] = (await klamm.logged("defect"))[:1]
        assert "ZeroDivisionError" in line.message
        klamm.proxied.bind = bind  # type: ignore[method-assign]
        await looks(broker, 2)


@on_uvloop
async def test_a_node_that_flaps_does_not_flood_the_log_or_the_memory() -> None:
    async with cluster(1) as (klamm, [broker]):
        client = await klamm.client(1)
        topology = klamm.proxied.topology
        for turn in range(3000):
            topology.learn("broker", 1, broker.host, broker.port + turn % 2)
        assert len(topology.changes) <= 1000
        await client.ask("Heartbeat", 4, {})
        await eventually(lambda: not topology.changes)
    moves = [line for line in klamm.log.of("topology") if " moved " in line.message]
    assert {line.level for line in moves} == {"warning"}  # which the log writes once a minute


def test_the_log_writes_the_moves_of_a_node_once_a_minute() -> None:
    out = io.BytesIO()
    log = EventLog(out, clock=lambda: 0.0)
    for turn in range(1000):
        log.event("topology", f"broker 1 moved {turn}", "warning", per=NodeKey("broker", 1))
        log.event("topology", f"broker 2 moved {turn}", "warning", per=NodeKey("broker", 2))
    log.close()
    lines = out.getvalue().splitlines()
    assert [b"moved 0" in line for line in lines] == [True, True, False, False]
    assert b'"suppressed":999' in lines[2]


@on_uvloop
async def test_stop_ends_what_is_open_and_what_is_being_opened() -> None:
    async with cluster(1) as (klamm, _):
        clients = [await klamm.client(1) for _ in range(3)]
        await clients[0].ask("Heartbeat", 4, {})
        late = await klamm.client(1)
        await klamm.proxied.stop()
        for client in [*clients, late]:
            await client.ended()
        await turns()
        assert not klamm.proxied.tasks.running
        with pytest.raises(OSError):
            await klamm.client(1)
