"""Connections that the kernel redirects to klamm, in a network of the test's own with rules of iptables.

Clients of the brokers come from OUTSIDE, as another process would; klamm's own connections do not.
"""

from __future__ import annotations

import asyncio
import errno
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy import config
from klamm.proxy.cluster.client_ports import redirected
from klamm.proxy.config_types import Listen, Network, Port
from klamm.proxy.edge.accepting import entrance
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.brokers.processes import free_block
from tests.fakes.broker import Broker, Cluster, Connection, Request, closes, metadata
from tests.fakes.client import Client, connect
from tests.fakes.edge import Edge, edge, proxied, started
from tests.fakes.redirect import another_machine, iptables, own_network
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.edge.test_listen_tls import BEAT, file, gone, trusting

OUTSIDE, OUTSIDE_V6 = "127.0.0.2", "fd00::2"
ANY = config.Transparent()


@pytest.fixture(autouse=True)
def network() -> Iterator[None]:
    with own_network():
        subprocess.run(["ip", "address", "add", f"{OUTSIDE_V6}/128", "dev", "lo", "nodad"], check=True)
        yield


def redirect(klamm: Edge, *ports: int, source: str | None = OUTSIDE) -> None:
    """Connections to these ports come to klamm; from `source` only, or from everywhere."""
    v6 = source is not None and ":" in source
    of = [] if source is None else ["-s", source]
    for port in ports:
        rule = ["-A", "OUTPUT", "-p", "tcp", *of, "--dport", str(port)]
        iptables(*rule, "-j", "REDIRECT", "--to-ports", str(klamm.port), v6=v6)


@asynccontextmanager
async def transparent(
    broker: Broker, to: config.Transparent = ANY, source: str | None = OUTSIDE, **settings: Any
) -> AsyncIterator[Edge]:
    async with edge(broker, transparent=to, **settings) as klamm:
        redirect(klamm, broker.port, source=source)
        yield klamm


async def client_of(klamm: Edge, broker: Broker, source: str = OUTSIDE) -> Client:
    """A client that connects to the broker's own address."""
    made = await connect(broker.host, broker.port, source)
    klamm.clients.append(made)
    return made


@on_uvloop
async def test_a_client_reaches_its_broker_by_the_brokers_own_address() -> None:
    async with Broker(Cluster(), 1).listening() as broker, transparent(broker) as klamm:
        one = await client_of(klamm, broker)
        [row] = (await one.ask("Metadata", 12, {"topics": []}))["brokers"]
        assert (row["host"], row["port"]) == (broker.host, broker.port)
        [link] = klamm.proxied.links
        assert link.target == NodeKey("broker", 1)
        assert link.local_address == (broker.host, broker.port)
        assert link.client_address == one.transport.get_extra_info("sockname")
        assert not klamm.log.bad()
        [state] = klamm.proxied.state().nodes
        assert state.listening == state.upstream == f"{broker.host}:{broker.port}"
        assert set(klamm.proxied.ports.by_port) == {klamm.port}


@on_uvloop
async def test_rules_act_and_exchanges_are_counted_by_broker() -> None:
    async with Broker(Cluster(), 1).listening() as broker, transparent(broker) as klamm:
        klamm.rule("- {api: Heartbeat, broker: 1, error: NOT_COORDINATOR}")
        one = await client_of(klamm, broker)
        assert (await one.ask("Heartbeat", 4, BEAT))["error_code"] == 16
        assert [key[:2] for key in klamm.stats.requests] == [("kafka", "1")]


@on_uvloop
async def test_a_broker_that_is_advertised_by_a_name_is_found_by_it() -> None:
    nodes = Cluster()
    async with Broker(nodes, 7).listening(named="localhost") as broker, transparent(broker) as klamm:
        one = await client_of(klamm, broker)
        await one.ask("Heartbeat", 4, BEAT)
        [link] = klamm.proxied.links
        assert link.target == NodeKey("broker", 7)


@on_uvloop
async def test_a_destination_that_no_response_has_named_is_reached_as_a_bootstrap_server() -> None:
    async with (
        Broker(Cluster(), 1).listening() as broker,
        Broker(Cluster(), 1).listening() as other,
        transparent(broker) as klamm,
    ):
        redirect(klamm, other.port)
        one = await client_of(klamm, other)
        await one.ask("Heartbeat", 4, BEAT)
        assert len(other.requests("Heartbeat")) == 1
        [link] = klamm.proxied.links
        assert link.target is None


@on_uvloop
async def test_brokers_that_klamm_may_not_ask_for_are_learned_from_the_clients() -> None:
    def known(connection: Connection, request: Request) -> dict[str, Any] | None:
        if any(one.name == "SaslAuthenticate" for one in connection.requests):
            return metadata(connection, request)
        return closes(connection, request)

    async with Broker(Cluster(), 4).listening() as broker:
        broker.answers["Metadata"] = known
        broker.answers["SaslHandshake"] = lambda *_: {"error_code": 0, "mechanisms": ["PLAIN", "GSSAPI"]}
        broker.answers["SaslAuthenticate"] = lambda *_: {"error_code": 0}
        async with transparent(broker) as klamm:
            assert not klamm.proxied.topology.nodes
            [line] = klamm.log.of("sasl")
            assert "GSSAPI" not in line.message  # it works: clients keep the brokers' host names
            one = await client_of(klamm, broker)
            await one.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
            await one.ask("SaslAuthenticate", 2, {"auth_bytes": b"\0alice\0secret"})
            await one.ask("Metadata", 12, {"topics": []})
            two = await client_of(klamm, broker)
            await two.ask("Heartbeat", 4, BEAT)
            assert {link.target for link in klamm.proxied.links} == {None, NodeKey("broker", 4)}


@on_uvloop
async def test_a_redirect_of_ipv6() -> None:
    listen = Listen("::", 0)
    async with Broker(Cluster(), 1).listening(host="::1") as broker:
        async with transparent(broker, source=OUTSIDE_V6, listen=listen) as klamm:
            one = await client_of(klamm, broker, OUTSIDE_V6)
            await one.ask("Heartbeat", 4, BEAT)
            [link] = klamm.proxied.links
            assert (link.target, link.local_address) == (NodeKey("broker", 1), ("::1", broker.port))


@on_uvloop
async def test_a_redirect_of_ipv4_to_a_listener_for_both() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        async with transparent(broker, listen=Listen("::", 0)) as klamm:
            one = await client_of(klamm, broker)
            await one.ask("Heartbeat", 4, BEAT)
            [link] = klamm.proxied.links
            assert link.local_address == (broker.host, broker.port)


ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 30) as sock:
    sock.sendall(bytes.fromhex(sys.argv[3]))
    print(sock.recv(1000).hex())
"""


@on_uvloop
async def test_clients_of_another_machine_whose_gateway_klamm_is() -> None:
    with another_machine("10.99.0.9") as pid:
        async with Broker(Cluster(), 1).listening(host="10.99.0.9") as broker:
            async with edge(broker, transparent=ANY, listen=Listen("0.0.0.0", 0)) as klamm:
                rule = ["-A", "PREROUTING", "-p", "tcp", "--dport", str(broker.port)]
                iptables(*rule, "-j", "REDIRECT", "--to-ports", str(klamm.port))
                request = request_frame(API["Heartbeat"], 4, 7, "app", encode(BEAT, 12, 4, "request"))
                there = ["nsenter", "-t", str(pid), "-n", sys.executable, "-c", ASK]
                command = [*there, broker.host, str(broker.port), request.hex()]
                answer = await asyncio.to_thread(subprocess.check_output, command, text=True, timeout=60)
                assert bytes.fromhex(answer)[4:8] == (7).to_bytes(4, "big")
                assert {key[:2] for key in klamm.stats.requests} == {("kafka", "1")}
                assert not klamm.log.bad()


@on_uvloop
async def test_a_client_that_connects_to_klamm_itself_is_refused_and_a_health_check_is_none() -> None:
    async with Broker(Cluster(), 1).listening() as broker, transparent(broker) as klamm:
        check = await klamm.client()
        check.send_fin()
        await gone(check)
        assert not klamm.log.bad()
        one = await klamm.client()
        one.send("Heartbeat", 4, BEAT)
        await gone(one)
        [line] = await klamm.logged("bad_destination")
        assert "the client connected to klamm's own port" in line.message
        assert klamm.problems() == {"bad_destination": 1}


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "TLS"])
@on_uvloop
async def test_a_redirect_of_klamms_own_connections_is_told_and_goes_round_once(
    context: ssl.SSLContext, certificates: Path, tls: bool
) -> None:
    upstream = config.Tls(ca=file(certificates / "ca.pem")) if tls else None
    async with Broker(Cluster(), 1).listening(tls=context if tls else None) as broker:
        async with transparent(broker, source=None, tls=upstream) as klamm:
            one = await client_of(klamm, broker)
            one.send("Heartbeat", 4, BEAT)
            await gone(one)
            await eventually(lambda: klamm.log.of("bad_destination"))
            [line] = klamm.log.of("bad_destination")
            assert f"a connection of klamm's own to {broker.host}:{broker.port}" in line.message
            assert "--uid-owner" in line.message
            await klamm.empty()
            assert klamm.stats.opened.total() == 1
            assert klamm.proxied.redirected is not None
            assert not klamm.proxied.redirected.own_ends


@on_uvloop
async def test_a_redirect_of_klamms_own_connections_is_told_at_the_start_too() -> None:
    listen = Listen("127.0.0.1", free_block())
    async with Broker(Cluster(), 1).listening() as broker:
        rule = ["-A", "OUTPUT", "-p", "tcp", "--dport", str(broker.port)]
        iptables(*rule, "-j", "REDIRECT", "--to-ports", str(listen.first))
        made, log = proxied(broker, transparent=ANY, listen=listen)
        async with started(made, log, ready=False) as klamm:
            lines = await klamm.logged("bad_destination")
            assert f"a connection of klamm's own to {broker.host}:{broker.port}" in lines[0].message
            assert not made.readiness.ready


@on_uvloop
async def test_clients_pass_before_klamm_has_found_the_cluster() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        made, log = proxied([("127.0.0.1", 9)], transparent=ANY)
        async with started(made, log, ready=False) as klamm:
            await eventually(lambda: made.ports.by_port)
            redirect(klamm, broker.port)
            one = await client_of(klamm, broker)
            await one.ask("Heartbeat", 4, BEAT)
            assert not made.readiness.ready


@pytest.mark.parametrize(
    ("to", "says"),
    [
        (config.Transparent(to=(Network("10.0.0.0/8"),)), "is in no network of transparent.to"),
        (config.Transparent(ports=(Port(9092),)), "has no port of transparent.ports"),
    ],
)
@on_uvloop
async def test_other_destinations_than_those_of_the_settings_are_refused(
    to: config.Transparent, says: str
) -> None:
    async with Broker(Cluster(), 1).listening() as broker, transparent(broker, to) as klamm:
        one = await client_of(klamm, broker)
        one.send("Heartbeat", 4, BEAT)
        await gone(one)
        [line] = await klamm.logged("bad_destination")
        assert f"{broker.host}:{broker.port} {says}" in line.message


@on_uvloop
async def test_destinations_of_the_settings_are_reached() -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        to = config.Transparent((Network("127.0.0.0/8"),), (Port(broker.port),))
        async with transparent(broker, to) as klamm:
            await (await client_of(klamm, broker)).ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_a_kernel_that_tracks_no_connections_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def untracked(sock: object) -> tuple[str, int]:
        raise OSError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(redirected, "original_destination", untracked)
    async with Broker(Cluster(), 1).listening() as broker, transparent(broker) as klamm:
        one = await klamm.client()
        one.send("Heartbeat", 4, BEAT)
        await gone(one)
        [line] = await klamm.logged("bad_destination")
        assert (
            "the kernel does not know where the connection was for (No such file or directory)"
            in line.message
        )


@on_uvloop
async def test_a_broker_that_is_down_is_a_reset_for_its_client() -> None:
    async with Broker(Cluster(), 1).listening() as broker, transparent(broker) as klamm:
        redirect(klamm, 9)
        made = await connect("127.0.0.1", 9, OUTSIDE)
        klamm.clients.append(made)
        made.send("Heartbeat", 4, BEAT)
        assert await made.ended() == "RST"
        [line] = await klamm.logged("broker_unreachable")
        assert "127.0.0.1:9" in line.message


@on_uvloop
async def test_tls_without_a_certificate_of_klamm_passes_unread_and_is_counted(
    context: ssl.SSLContext, certificates: Path
) -> None:
    upstream = config.Tls(ca=file(certificates / "ca.pem"))
    async with Broker(Cluster(), 1).listening(tls=context) as broker:
        async with transparent(broker, tls=upstream) as klamm:
            for _ in range(2):
                one = await secured_client(klamm, broker, certificates)
                await one.ask("Heartbeat", 4, BEAT)
            sent = {key: count for key, count in klamm.stats.opaque.items() if count > 100}
            assert set(sent) == {("kafka", "1", "client"), ("kafka", "1", "broker")}
            [line] = klamm.log.of("opaque")
            assert "pass unread, and are counted" in line.message
            assert "--listen-tls-cert" in line.message
            assert klamm.problems() == {}
            assert not any(key[0] for key in klamm.stats.requests if key[3] == "Heartbeat")
            one.transport.close()
            await eventually(lambda: klamm.stats.closed.total() >= 1)


@on_uvloop
async def test_tls_ends_at_klamm_where_it_has_a_certificate(
    context: ssl.SSLContext, certificates: Path
) -> None:
    tls = config.ListenTls(file(certificates / "broker.pem"))
    upstream = config.Tls(ca=file(certificates / "ca.pem"))
    async with Broker(Cluster(), 1).listening(tls=context, named="localhost") as broker:
        async with transparent(broker, listen_tls=tls, tls=upstream) as klamm:
            one = await secured_client(klamm, broker, certificates)
            await one.ask("Heartbeat", 4, BEAT)
            [link] = klamm.proxied.links
            assert link.target == NodeKey("broker", 1)
            assert any(key[3] == "Heartbeat" for key in klamm.stats.requests)
            assert not klamm.stats.opaque
            assert not klamm.log.bad()


async def secured_client(klamm: Edge, broker: Broker, certificates: Path) -> Client:
    made = Client()
    await asyncio.get_running_loop().create_connection(
        lambda: made,
        broker.host,
        broker.port,
        local_addr=(OUTSIDE, 0),
        ssl=trusting(certificates),
        server_hostname="localhost",
    )
    klamm.clients.append(made)
    return made


@on_uvloop
async def test_a_client_that_says_nothing_yet_is_connected_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entrance, "FIRST_S", 0.05)
    async with Broker(Cluster(), 1).listening() as broker, transparent(broker) as klamm:
        one = await client_of(klamm, broker)
        await klamm.links(1)
        await one.ask("Heartbeat", 4, BEAT)
