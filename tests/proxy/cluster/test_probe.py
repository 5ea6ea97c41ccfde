"""klamm notices soon that no broker answers, and that one does again, behind SASL too."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API
from klamm.proxy import config
from klamm.proxy.cluster import cluster as edge_of_cluster
from klamm.proxy.cluster.own_requests import probe
from klamm.proxy.config_types import InputFile
from tests.fakes.broker import Answer, Broker, Cluster, Connection, Request, closes, silent
from tests.fakes.edge import Edge, cluster, edge
from tests.fakes.waiting import eventually, on_uvloop


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes come at once; looks for nodes do not come."""
    monkeypatch.setattr(probe, "PROBE_S", 0.01)
    monkeypatch.setattr(probe, "OTHERS_S", 1.0)
    monkeypatch.setattr(probe, "ANSWER_S", 2.0)
    monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 3600.0)


def wants_sasl(broker: Broker) -> None:
    """As Kafka, it closes where klamm has to say first who it is, and on ApiVersions once it has answered one
    of a version that it knows.
    """
    known = broker.answers["ApiVersions"]

    def once(connection: Connection, request: Request) -> Any:
        before = [each for each in connection.requests if each is not request]
        told = any(each.version in API[each.name].versions for each in before)
        return closes(connection, request) if told else known(connection, request)

    broker.answers["ApiVersions"] = once
    broker.answers["Metadata"] = closes
    broker.answers["SaslHandshake"] = lambda *_: {"error_code": 33, "mechanisms": ["PLAIN"]}


@contextmanager
def frozen(*brokers: Broker) -> Iterator[None]:
    """They take connections, and answer nothing."""
    for each in brokers:
        each.on_data = lambda connection, data: None
    try:
        yield
    finally:
        for each in brokers:
            each.on_data = None


async def probes(klamm: Edge, count: int = 3) -> None:
    """Wait until so many more are answered."""
    wanted = klamm.proxied.probes + count
    await eventually(lambda: klamm.proxied.probes >= wanted)


def open_at(broker: Broker) -> list[Connection]:
    return [each for each in broker.connections if not each.lost]


@on_uvloop
async def test_behind_sasl_klamm_follows_a_cluster_whose_last_broker_dies_and_comes_back() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        wants_sasl(broker)
        async with edge(broker) as klamm:
            await probes(klamm)
            assert klamm.log.of("unreachable") == []
            await broker.stop()
            [line] = await klamm.logged("unreachable")
            where = f"127.0.0.1:{broker.port}"
            message = f"no broker answers: {where} refuses connections"
            assert (line.level, line.message) == ("error", f"{message}; trying again")
            state = klamm.proxied.state()
            assert (state.ready, state.state, state.reason) == (False, "degraded", message)
            await broker.start(port=broker.port)
            await klamm.logged("reachable")
            assert (klamm.proxied.state().ready, klamm.proxied.state().reason) == (True, "")
            await probes(klamm)
            assert [len(klamm.log.of(kind)) for kind in ("unreachable", "reachable")] == [1, 1]


@on_uvloop
async def test_behind_sasl_klamm_notices_brokers_that_take_connections_and_answer_nothing() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        wants_sasl(broker)
        async with edge(broker) as klamm:
            await probes(klamm)
            with frozen(broker):
                [line] = await klamm.logged("unreachable")
                assert f"127.0.0.1:{broker.port} does not answer within 2 s" in line.message
                assert not klamm.proxied.state().ready
            await klamm.logged("reachable")
            assert klamm.proxied.state().ready


@on_uvloop
async def test_without_sasl_a_cluster_that_answers_probes_again_is_asked_for_its_nodes() -> None:
    async with cluster(1) as (klamm, [broker]):
        await broker.stop()
        await klamm.logged("unreachable")
        broker.cluster.nodes[2] = ("127.0.0.1", 1)
        await broker.start(port=broker.port)
        await klamm.logged("reachable")
        assert [node.node_id for node in klamm.proxied.state().nodes] == [1, 2]


@on_uvloop
async def test_a_cluster_that_answers_probes_alone_stays_unready_and_is_seldom_asked() -> None:
    async with cluster(1) as (klamm, [broker]):
        await broker.stop()
        await klamm.logged("unreachable")
        broker.answers["Metadata"] = closes
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 34, "mechanisms": []}  # it wants no SASL
        await broker.start(port=broker.port)
        asked = len(broker.requests("Metadata"))
        await probes(klamm, 40)
        assert not klamm.proxied.state().ready
        assert "closes the connection when it is asked" in klamm.proxied.state().reason
        assert len(broker.requests("Metadata")) - asked <= 6
        assert len(klamm.log.of("unreachable")) == 1


@on_uvloop
async def test_one_connection_stays_open_for_all_probes_and_nothing_but_versions_is_asked_on_it() -> None:
    async with cluster(3) as (klamm, brokers):
        await probes(klamm, 20)
        [connection] = [each for broker in brokers for each in open_at(broker)]
        assert {each.name for each in connection.requests} == {"ApiVersions"}
        assert len(connection.requests) >= 20
        assert {each.client_id for each in connection.requests} == {"klamm"}


@on_uvloop
async def test_behind_sasl_too_one_connection_stays_open_for_all_probes() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        wants_sasl(broker)
        async with edge(broker) as klamm:
            await probes(klamm)
            made = len(broker.connections)
            await probes(klamm, 20)
            assert len(broker.connections) == made
            [connection] = open_at(broker)
            assert {each.name for each in connection.requests} == {"ApiVersions"}
            assert klamm.proxied.state().ready


@pytest.mark.parametrize("refuses", [closes, silent])
@on_uvloop
async def test_a_server_behind_sasl_that_refuses_no_unknown_version_is_probed_all_the_same(
    refuses: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "OTHERS_S", 0.1)
    monkeypatch.setattr(probe, "REFUSES_S", 0.05)
    async with Broker(Cluster(), 1).listening() as broker:
        wants_sasl(broker)
        once = broker.answers["ApiVersions"]

        def knows_no_other(connection: Connection, request: Request) -> Any:
            unknown = request.version not in API[request.name].versions
            return (refuses if unknown else once)(connection, request)

        broker.answers["ApiVersions"] = knows_no_other
        async with edge(broker) as klamm:
            await probes(klamm, 10)
            assert klamm.proxied.state().ready
            assert klamm.log.of("unreachable") == []


@on_uvloop
async def test_where_one_broker_answers_no_more_another_is_asked_and_the_cluster_stays_ready() -> None:
    async with cluster(3) as (klamm, brokers):
        await probes(klamm)
        with frozen(brokers[0]):
            before = sum(len(broker.connections) for broker in brokers[1:])
            await probes(klamm)
            assert sum(len(broker.connections) for broker in brokers[1:]) > before
            await eventually(lambda: sum(len(open_at(broker)) for broker in brokers) == 1)
            assert open_at(brokers[0]) == []
            assert klamm.proxied.state().ready
            assert klamm.log.of("unreachable") == []


@on_uvloop
async def test_a_broker_that_ends_the_idle_connection_is_asked_on_another() -> None:
    async with cluster(1) as (klamm, [broker]):
        await probes(klamm)
        made = len(broker.connections)
        [connection] = open_at(broker)
        connection.close()
        await probes(klamm)
        assert len(broker.connections) == made + 1
        assert klamm.log.of("unreachable") == []


@on_uvloop
async def test_other_settings_of_the_way_to_brokers_are_used_by_the_next_probe() -> None:
    async with cluster(1) as (klamm, [broker]):
        await probes(klamm)
        [connection] = open_at(broker)
        klamm.proxied.dialler.way = klamm.proxied.dialler.way._replace(timeout_s=7)
        await probes(klamm)
        assert connection.lost
        assert len(open_at(broker)) == 1


@on_uvloop
async def test_where_brokers_speak_tls_probes_do_too(context: ssl.SSLContext, certificates: Path) -> None:
    settings = config.Tls(ca=InputFile(str(certificates / "ca.pem")))
    async with Broker(Cluster(), 1).listening(tls=context) as broker, edge(broker, tls=settings) as klamm:
        await probes(klamm)
        await eventually(lambda: len(open_at(broker)) == 1)
        [connection] = open_at(broker)
        await probes(klamm)
        assert len(connection.requests) > 1
        assert klamm.log.bad() == []


@on_uvloop
async def test_brokers_that_know_no_api_versions_are_not_probed() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        broker.answers["ApiVersions"] = closes
        async with edge(broker) as klamm:
            assert not klamm.proxied.readiness.probed
            asked = len(broker.requests("ApiVersions"))
            client = await klamm.client()
            for _ in range(20):
                await client.ask("Heartbeat", 4, {})
            assert len(broker.requests("ApiVersions")) == asked
            assert klamm.proxied.state().ready


@on_uvloop
async def test_a_defect_in_a_probe_is_said_and_the_next_probe_comes() -> None:
    async with cluster(1) as (klamm, _):
        failed: list[int] = []

        def fails() -> bool:
            failed.append(1)
            raise ZeroDivisionError

        klamm.proxied.readiness.asks_again = fails  # type: ignore[method-assign]
        [line] = (await klamm.logged("defect"))[:1]
        assert "ZeroDivisionError" in line.message
        await eventually(lambda: len(failed) > 2)


@on_uvloop
async def test_no_more_than_32_others_are_asked_in_one_probe(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(1) as (klamm, [broker]):
        await probes(klamm)
        for node_id in range(2, 100):
            klamm.proxied.topology.learn("broker", node_id, f"127.0.1.{node_id}", 1)
        await broker.stop()
        [line] = await klamm.logged("unreachable")
        assert line.message.count("refuses connections") == 1 + probe.MOST


@on_uvloop
async def test_the_connection_ends_with_the_cluster() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        async with edge(broker) as klamm:
            await probes(klamm)
        await broker.until(lambda: not open_at(broker))
