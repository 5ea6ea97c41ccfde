"""Listeners, and what they lead to: bound before a client hears of them, and following their nodes."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from klamm.proxy.cluster import cluster as edge_of_cluster
from klamm.proxy.cluster.client_ports import advertised
from klamm.proxy.config import Limits
from klamm.proxy.config_types import Address, Count, Listen
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.brokers.processes import free_ports
from tests.fakes.broker import QUORUM, Broker, Cluster
from tests.fakes.client import connect
from tests.fakes.edge import cluster, edge, proxied
from tests.fakes.waiting import eventually, on_uvloop, turns

ALL = {"topics": []}


def addresses(answer: dict[str, Any]) -> dict[int, tuple[str, int]]:
    return {row["node_id"]: (row["host"], row["port"]) for row in answer["brokers"]}


def listen(count: int, host: str = "127.0.0.1") -> Listen:
    """A range of so many free ports."""
    first = free_ports(count)
    return Listen(host, first, first + count - 1)


@on_uvloop
async def test_every_listener_leads_to_exactly_its_node() -> None:
    async with cluster(3) as (klamm, brokers):
        endpoints = addresses(await (await klamm.client()).ask("Metadata", 12, ALL))
        assert sorted(endpoints) == [1, 2, 3]
        for broker in brokers:
            client = await connect(*endpoints[broker.node_id])
            klamm.clients.append(client)
            answer = await client.ask("FindCoordinator", 3, {"key": "g"})
            assert (answer["node_id"], answer["host"], answer["port"]) == (
                broker.node_id,
                *endpoints[broker.node_id],
            )


@on_uvloop
async def test_a_node_named_in_an_answer_only_has_its_listener_before_the_answer_goes_on() -> None:
    async with cluster() as (klamm, [broker]):
        new = await Broker(broker.cluster, 2**31 - 1).start()
        client = await klamm.client(1)
        endpoints = addresses(await client.ask("Metadata", 12, ALL))
        with socket.create_connection(endpoints[2**31 - 1], timeout=1):  # before the loop has another turn
            pass
        follower = await connect(*endpoints[2**31 - 1])
        klamm.clients.append(follower)
        assert (await follower.ask("Heartbeat", 4, {}))["error_code"] == 0
        assert new.requests("Heartbeat")
        await new.stop()


@on_uvloop
async def test_many_connections_that_meet_a_new_node_at_once_bind_it_once() -> None:
    async with cluster() as (klamm, [broker]):
        clients = [await klamm.client(1) for _ in range(20)]
        broker.cluster.nodes |= dict.fromkeys((5, 6, 7), ("127.0.0.1", 1))
        for client in clients:
            client.send("Metadata", 12, ALL)
            client.send("DescribeCluster", 1, {})
        answers = [addresses(await client.answer("Metadata", 12)) for client in clients]
        assert all(one == answers[0] for one in answers)
        assert len(klamm.proxied.ports.by_port) == 1 + 4
        assert not klamm.log.of("unbindable")


@on_uvloop
async def test_a_node_that_moves_takes_its_listener_along() -> None:
    async with cluster(2) as (klamm, [first, second]):
        port = klamm.port_of(2)
        old = await klamm.client(2)
        await old.ask("Heartbeat", 4, {})
        moved = await Broker(first.cluster, 2).start()
        await (await klamm.client(1)).ask("Metadata", 12, ALL)
        assert klamm.port_of(2) == port
        new = await klamm.client(2)
        await new.ask("Heartbeat", 4, {})
        assert len(moved.requests("Heartbeat")) == 1
        await old.ask("Heartbeat", 4, {})  # open connections stay where they are
        assert len(second.requests("Heartbeat")) == 2
        await moved.stop()


@on_uvloop
async def test_controllers_have_listeners_of_their_own() -> None:
    async with cluster() as (klamm, [broker]):
        controller = await Broker(Cluster(), 1).start()
        broker.cluster.controllers[1] = (controller.host, controller.port)
        client = await klamm.client(1)
        rows = (await client.ask("DescribeCluster", 1, {"endpoint_type": 2}))["brokers"]
        assert [(row["broker_id"], row["port"]) for row in rows] == [(1, klamm.port_of(1, "controller"))]
        assert klamm.port_of(1, "controller") != klamm.port_of(1)
        asking = await klamm.client(1, kind="controller")
        await asking.ask("Heartbeat", 4, {})
        assert controller.requests("Heartbeat")
        quorum = await client.ask("DescribeQuorum", 2, {"topics": QUORUM})
        assert quorum["nodes"][0]["listeners"][0]["port"] == klamm.port_of(1, "controller")
        await controller.stop()


@on_uvloop
async def test_ports_are_the_same_after_a_restart() -> None:
    at = listen(50)
    seen = []
    nodes = Cluster()
    async with Broker(nodes, 1).listening() as broker:
        nodes.nodes |= {2: ("h", 1), 40: ("h", 2), 2_000_000_000: ("h", 3), 2**31 - 1: ("h", 4)}
        nodes.controllers |= {1: ("h", 5), 3000: ("h", 6)}
        for order in (list(nodes.nodes), sorted(nodes.nodes, reverse=True)):
            nodes.nodes = {node: nodes.nodes[node] for node in order}
            async with edge(broker, listen=at) as klamm:
                await klamm.client()
                seen.append({key: node.listen_port for key, node in klamm.proxied.topology.nodes.items()})
    assert seen[0] == seen[1]
    ports = seen[0]
    assert ports[NodeKey("broker", 1)] == at.first + 2
    assert ports[NodeKey("broker", 40)] == at.first + 41
    assert len(set(ports.values())) == len(ports) == 7


@on_uvloop
async def test_pinned_ports_are_used_and_left_free_by_others() -> None:
    at = listen(10)
    async with Broker(Cluster(), 1).listening() as broker:
        broker.cluster.nodes |= {7: ("h", 1), 2: ("h", 2)}
        async with edge(broker, listen=at, ports={7: at.first + 2, 2: free_ports()}) as klamm:
            assert klamm.port_of(7) == at.first + 2
            assert klamm.port_of(2) not in at.ports
            assert klamm.port_of(1) not in (at.first + 2, klamm.port_of(2))
            [line] = klamm.log.of("unstable_port")
            assert line.message.startswith(f"broker 1 listens on {klamm.port_of(1)}")


@on_uvloop
async def test_a_taken_port_closes_the_answer_rather_than_leaking_the_address() -> None:
    at = listen(10)
    async with Broker(Cluster(), 1).listening() as broker:
        with socket.create_server(("127.0.0.1", at.first + 3)):
            async with edge(broker, listen=at) as klamm:
                client = await klamm.client(1)
                await client.ask("Metadata", 12, ALL)
                broker.cluster.nodes[2] = ("kafka-2.internal", 9092)
                client.send("Metadata", 12, ALL)
                assert await client.ended() == "FIN"
                assert client.received == b""
                line = klamm.log.of("unbindable")[-1]
                assert line.fields["api"] == "Metadata"
                assert "broker 2" in line.message
                assert str(at.first + 3) in line.message
                assert "--listen" in line.message
                assert klamm.problems()["unbindable"] == 1
                other = await klamm.client(1)
                assert (await other.ask("Heartbeat", 4, {}))["error_code"] == 0


@on_uvloop
async def test_a_port_that_becomes_free_is_taken_at_the_next_look(monkeypatch: pytest.MonkeyPatch) -> None:
    at = listen(10)
    async with Broker(Cluster(), 1).listening() as broker:
        broker.cluster.nodes[2] = ("127.0.0.1", 1)
        taken = socket.create_server(("127.0.0.1", at.first + 3))
        monkeypatch.setattr(edge_of_cluster, "REFRESH_S", 0.02)
        async with edge(broker, listen=at) as klamm:
            assert klamm.proxied.topology.nodes[NodeKey("broker", 2)].failure
            assert klamm.proxied.state().nodes[1].unbound == f"port {at.first + 3}: address already in use"
            taken.close()
            await eventually(lambda: klamm.proxied.topology.nodes[NodeKey("broker", 2)].listen_port)
            assert not klamm.proxied.state().nodes[1].unbound
            endpoints = addresses(await (await klamm.client(1)).ask("Metadata", 12, ALL))
            assert endpoints[2] == ("127.0.0.1", at.first + 3)


@on_uvloop
async def test_a_full_range_closes_the_answer_and_names_the_option() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        async with edge(broker, listen=listen(3)) as klamm:
            client = await klamm.client(1)
            broker.cluster.nodes |= {2: ("h", 1), 3: ("h", 2)}
            client.send("Metadata", 12, ALL)
            assert await client.ended() == "FIN"
            assert client.received == b""
            line = klamm.log.of("unbindable")[-1]
            assert line.fields["api"] == "Metadata"
            assert "no port is left" in line.message
            assert "--listen" in line.message


@on_uvloop
async def test_a_range_of_just_enough_ports_is_enough() -> None:
    at = listen(4)
    async with Broker(Cluster(), 0).listening() as broker:
        broker.cluster.nodes |= {1: ("h", 1), 2: ("h", 2)}
        async with edge(broker, listen=at) as klamm:
            assert [klamm.port_of(n) for n in (0, 1, 2)] == [at.first + 1, at.first + 2, at.first + 3]
            assert not klamm.log.bad() or {line.kind for line in klamm.log.bad()} == {"broker_unreachable"}


@on_uvloop
async def test_a_taken_bootstrap_port_ends_klamm_with_the_option() -> None:
    at = listen(5)
    async with Broker(Cluster(), 1).listening() as broker:
        with socket.create_server(("127.0.0.1", at.first)):
            made, _ = proxied(broker, listen=at)
            with pytest.raises(OSError, match=r"cannot listen on .*: address already in use; .*--listen"):
                await made.follow()
            await made.stop()
            await turns()


@pytest.mark.parametrize(
    ("listening", "connecting"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.2"),
        ("::1", "::1"),
        ("::", "::1"),
        ("::", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
    ],
)
@on_uvloop
async def test_a_client_is_told_the_address_that_it_connected_to(listening: str, connecting: str) -> None:
    async with cluster(listen=listen(10, listening)) as (klamm, _):
        client = await klamm.client(host=connecting)
        endpoints = addresses(await client.ask("Metadata", 12, ALL))
        assert endpoints == {1: (connecting, klamm.port_of(1))}
        follower = await connect(*endpoints[1])
        klamm.clients.append(follower)
        assert (await follower.ask("FindCoordinator", 3, {"key": "g"}))["host"] == connecting
        assert klamm.proxied.listening().host not in ("0.0.0.0", "::")


@on_uvloop
async def test_an_advertised_host_is_what_every_client_is_told() -> None:
    async with cluster(listen=listen(10, "0.0.0.0"), advertise="klamm.example") as (klamm, _):
        for host in ("127.0.0.1", "127.0.0.2"):
            endpoints = addresses(await (await klamm.client(host=host)).ask("Metadata", 12, ALL))
            assert endpoints == {1: ("klamm.example", klamm.port_of(1))}
        assert klamm.proxied.listening().host == "klamm.example"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (UnicodeError("label too long"), "label too long"),
    ],
)
@on_uvloop
async def test_an_advertised_host_that_does_not_resolve_is_warned_of(
    error: Exception, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def fails(host: str) -> None:
        asked.append(host)
        raise error

    monkeypatch.setattr(advertised, "resolve", fails)
    async with cluster(advertise="no-such-host.invalid") as (klamm, _):
        [line] = await klamm.logged("advertise_unresolved")
        assert (line.level, asked) == ("warning", ["no-such-host.invalid"])
        assert line.message == (
            f"advertise: no-such-host.invalid does not resolve from here ({why}): clients are told this "
            "name, and those that cannot resolve it reach no broker; give a name or an address that leads "
            "clients to klamm"
        )


@on_uvloop
async def test_nobody_waits_for_the_resolver_of_the_advertised_host(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(host: str) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(advertised, "resolve", never)
    async with cluster(advertise="klamm.example") as (klamm, _):
        assert addresses(await (await klamm.client()).ask("Metadata", 12, ALL))[1][0] == "klamm.example"
        assert klamm.log.bad() == []


@on_uvloop
async def test_an_advertised_host_that_resolves_is_not_warned_of() -> None:
    for host in ("localhost", "127.0.0.1"):
        async with cluster(advertise=host) as (klamm, _):
            await eventually(lambda: len(klamm.proxied.tasks.running) == 2)  # probes, and held connections
            assert klamm.log.bad() == []


@on_uvloop
async def test_a_mapped_address_that_no_node_advertises_is_warned_of() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        at = broker.host, broker.port
        where = {Address("kafka-9", 9092): Address(*at), Address(*at): Address(*at)}
        async with edge(broker, map=where) as klamm:
            [line] = await klamm.logged("map_unused")
            assert line.message == f"map: no node advertises kafka-9:9092 now; they advertise {Address(*at)}"


@on_uvloop
async def test_mapped_addresses_are_dialled_instead_of_what_is_advertised() -> None:
    nodes = Cluster()
    broker = await Broker(nodes, 1).start(named="kafka-1.internal")
    other = await Broker(nodes, 2).start(host="::1", named="kafka-2.internal")
    where = {Address(f"kafka-{b.node_id}.internal", b.port): Address(b.host, b.port) for b in (broker, other)}
    async with edge([("kafka-1.internal", broker.port)], map=where) as klamm:
        assert not klamm.log.bad()
        client = await klamm.client(2)
        await client.ask("Heartbeat", 4, {})
        assert other.requests("Heartbeat")
        assert set(addresses(await client.ask("Metadata", 12, ALL)).values()) == {
            ("127.0.0.1", klamm.port_of(1)),
            ("127.0.0.1", klamm.port_of(2)),
        }
    await broker.stop()
    await other.stop()


@on_uvloop
async def test_an_ipv6_cluster_is_reached() -> None:
    async with Broker(Cluster(), 1).listening(host="::1") as broker:
        async with edge(broker, listen=listen(10, "::1")) as klamm:
            endpoints = addresses(await (await klamm.client(host="::1")).ask("Metadata", 12, ALL))
            assert endpoints == {1: ("::1", klamm.port_of(1))}
            assert klamm.proxied.state().nodes[0].upstream == f"[::1]:{broker.port}"


@on_uvloop
async def test_an_address_that_leads_back_to_klamm_is_refused_with_the_option() -> None:
    async with cluster(listen=listen(10)) as (klamm, [broker]):
        broker.cluster.nodes[1] = ("127.0.0.1", klamm.port_of(1))
        first = await klamm.client(1)
        await first.ask("Metadata", 12, ALL)
        client = await klamm.client(1)
        assert await client.ended() == "RST"
        [line] = klamm.log.of("broker_unreachable")
        assert "is klamm itself" in line.message
        assert f"--map 127.0.0.1:{klamm.port_of(1)}=HOST:PORT" in line.message
        for ask in (klamm.proxied.asking.ask, klamm.proxied.asking.greet):
            with pytest.raises(OSError, match="is klamm itself"):
                await ask(Address("127.0.0.1", klamm.port_of(1)))
        assert len(klamm.proxied.links) < 4


@on_uvloop
async def test_a_bootstrap_connection_leads_to_any_broker_that_is_there() -> None:
    async with cluster(3) as (klamm, [first, second, third]):
        await first.stop()
        await second.stop()
        client = await klamm.client()
        assert (await client.ask("Heartbeat", 4, {}))["error_code"] == 0
        assert third.requests("Heartbeat")
        assert not klamm.log.bad()


@on_uvloop
async def test_a_dead_bootstrap_server_is_not_tried_first_every_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as dead:
        where = dead.getsockname()
    async with Broker(Cluster(), 1).listening() as broker:
        async with edge([where, (broker.host, broker.port)]) as klamm:
            assert next(klamm.proxied.leading.candidates()) == (broker.host, broker.port)


@on_uvloop
async def test_when_no_broker_is_left_a_bootstrap_client_is_reset_and_each_is_named() -> None:
    async with cluster(2) as (klamm, brokers):
        for broker in brokers:
            await broker.stop()
        client = await klamm.client()
        assert await client.ended() == "RST"
        [line] = klamm.log.of("broker_unreachable")
        assert all(f"127.0.0.1:{broker.port} refuses connections" in line.message for broker in brokers)


@on_uvloop
async def test_a_node_with_nonsense_for_an_address_harms_nobody() -> None:
    async with cluster() as (klamm, [broker]):
        broker.cluster.nodes |= {2: ("a..b", 9092), 3: ("h", 99999), 4: ("", 9092), 5: ("h", -1)}
        client = await klamm.client(1)
        endpoints = addresses(await client.ask("Metadata", 12, ALL))
        assert endpoints[2] == ("127.0.0.1", klamm.port_of(2))
        assert endpoints[4] == ("", 9092)
        assert endpoints[5] == ("h", -1)
        for node in (2, 3):
            lost = await klamm.client(node)
            assert await lost.ended() == "RST"
        assert (await client.ask("Heartbeat", 4, {}))["error_code"] == 0
        assert {line.kind for line in klamm.log.bad()} == {"broker_unreachable"}


@on_uvloop
async def test_one_address_cannot_take_the_places_of_all() -> None:
    limits = Limits(connections_per_address=Count(2))
    async with cluster(1, limits=limits) as (klamm, _):
        for _ in range(2):
            await (await klamm.client(1)).ask("Heartbeat", 4, {})
        assert await (await klamm.client(1)).ended() == "RST"
        [line] = klamm.log.of("too_many_connections")
        assert "2 at once from 127.0.0.1 (limits.connections_per_address)" in line.message
        other = await connect("127.0.0.1", klamm.port_of(1), source="127.0.0.2")
        klamm.clients.append(other)
        await other.ask("Heartbeat", 4, {})
        assert klamm.proxied.shared.room.by_address == {"127.0.0.1": 2, "127.0.0.2": 1}


@on_uvloop
async def test_no_more_clients_than_the_limit_are_connected_at_once() -> None:
    async with cluster(2) as (klamm, _):
        klamm.proxied.shared.room.most = 2
        first, second = await klamm.client(1), await klamm.client(2)
        for client in (first, second):
            await client.ask("Heartbeat", 4, {})
        assert await (await klamm.client(1)).ended() == "RST"
        assert klamm.problems() == {"too_many_connections": 1}
        first.close()
        await klamm.links(1)
        assert (await (await klamm.client(1)).ask("Heartbeat", 4, {}))["error_code"] == 0
