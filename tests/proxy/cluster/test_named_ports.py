"""Clusters and brokers behind one port, told apart by the server name of TLS (SNI)."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from klamm.proxy import config
from klamm.proxy.cluster.client_ports import shared_ports
from klamm.proxy.cluster.client_ports.shared import shared_by
from klamm.proxy.cluster.reloading import prepare, take
from klamm.proxy.config_types import ClusterName, InputFile, Listen, Network, NodePattern, Port, ServerName
from klamm.proxy.edge.accepting import named_entrance
from klamm.proxy.edge.accepting.listener import bound
from klamm.proxy.session.rewriting.topology import NodeKey
from tests.brokers import certificates as certificates_of
from tests.brokers.processes import free_ports
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import Client
from tests.fakes.edge import Edge, edge, proxied, started
from tests.fakes.waiting import eventually, on_uvloop

ALL = {"topics": []}
TOLD = 9093  # the advertised port: nothing listens there
HOSTS = ["*.orders.example", "*.billing.example", "localhost"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    certificates_of.make(folder, HOSTS)
    return folder


def named(files: Path, cluster: str, port: int | None = TOLD, **tls: Any) -> dict[str, Any]:
    """The settings of a cluster with names."""
    names = config.Names(
        ServerName(f"bootstrap.{cluster}.example"),
        NodePattern(f"broker-$(node).{cluster}.example"),
        None if port is None else Port(port),
    )
    cert = InputFile(str(files / "broker.pem"))
    return {"name": ClusterName(cluster), "names": names, "listen_tls": config.ListenTls(cert, **tls)}


def trusting(files: Path, cert: Path | None = None) -> ssl.SSLContext:
    found = ssl.create_default_context(cafile=files / "ca.pem")
    if cert is not None:
        found.load_cert_chain(cert)
    return found


async def client(klamm: Edge, context: ssl.SSLContext, name: str | None, **more: Any) -> Client:
    """A client that asks for this name. Raises OSError."""
    made = Client()
    if name is None:
        context.check_hostname = False
    more = {"host": "127.0.0.1", "port": klamm.port, **more}
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: made, ssl=context, server_hostname=name or "", **more)
    klamm.clients.append(made)
    return made


@asynccontextmanager
async def both(files: Path, **more: Any) -> AsyncIterator[tuple[Edge, Edge]]:
    """The clusters orders, of brokers 1 and 2, and billing, of broker 1, behind one port."""
    nodes = Cluster("orders-id")
    async with AsyncExitStack() as stack:
        orders = [await stack.enter_async_context(Broker(nodes, number).listening()) for number in (1, 2)]
        billing = await stack.enter_async_context(Broker(Cluster("billing-id"), 1).listening())
        shared = shared_by(config.Limits())
        first = await stack.enter_async_context(
            edge(orders[0], shared=shared, **{**named(files, "orders"), **more})
        )
        second = await stack.enter_async_context(
            edge(billing, shared=shared, **{**named(files, "billing"), **more})
        )
        assert first.port == second.port
        yield first, second


def addresses(metadata: dict[str, Any]) -> dict[int, tuple[str, int]]:
    return {row["node_id"]: (row["host"], row["port"]) for row in metadata["brokers"]}


@on_uvloop
async def test_the_name_says_the_cluster_and_answers_have_the_names_of_its_nodes(files: Path) -> None:
    async with both(files) as (orders, billing):
        one = await client(orders, trusting(files), "bootstrap.orders.example")
        assert addresses(await one.ask("Metadata", 12, ALL)) == {
            1: ("broker-1.orders.example", TOLD),
            2: ("broker-2.orders.example", TOLD),
        }
        other = await client(orders, trusting(files), "bootstrap.billing.example")
        answer = await other.ask("Metadata", 12, ALL)
        assert addresses(answer) == {1: ("broker-1.billing.example", TOLD)}
        assert answer["cluster_id"] == "billing-id"
        assert [len(each.proxied.links) for each in (orders, billing)] == [1, 1]


@on_uvloop
async def test_the_name_of_a_node_leads_to_it(files: Path) -> None:
    async with both(files) as (orders, _):
        await client(orders, trusting(files), "broker-2.orders.example")
        [link] = await orders.links(1)
        assert link.target == NodeKey("broker", 2)
        assert {line.kind for line in orders.log.bad()} <= {"advertise_unresolved"}


@on_uvloop
async def test_a_controller_has_a_name_of_its_own(files: Path) -> None:
    nodes = Cluster()
    async with Broker(nodes, 1).listening() as broker, Broker(Cluster(), 7).listening() as controller:
        nodes.controllers[7] = controller.host, controller.port
        async with edge(broker, **named(files, "orders")) as klamm:
            one = await client(klamm, trusting(files), "bootstrap.orders.example")
            quorum = {
                "topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
            }
            [node] = (await one.ask("DescribeQuorum", 2, quorum))["nodes"]
            [listener] = node["listeners"]
            told = "broker-controller-7.orders.example"
            assert (listener["host"], listener["port"]) == (told, TOLD)
            await client(klamm, trusting(files), told)
            links = await klamm.links(2)
            assert NodeKey("controller", 7) in {link.target for link in links}
            states = {(state.kind, state.node_id): state.listening for state in klamm.proxied.state().nodes}
            assert states == {
                ("broker", 1): f"broker-1.orders.example:{TOLD}",
                ("controller", 7): f"{told}:{TOLD}",
            }


@on_uvloop
async def test_clients_are_told_the_listening_port_where_no_other_is_set(files: Path) -> None:
    nodes = Cluster()
    async with Broker(nodes, 1).listening() as broker, edge(broker, **named(files, "orders", None)) as klamm:
        one = await client(klamm, trusting(files), "BOOTSTRAP.orders.example")
        answer = await one.ask("Metadata", 12, ALL)
        assert addresses(answer) == {1: ("broker-1.orders.example", klamm.port)}
        assert klamm.proxied.state().listening == f"bootstrap.orders.example:{klamm.port}"


@pytest.mark.parametrize(
    ("name", "kind", "alert", "says"),
    [
        (None, "no_server_name", "MISSING_EXTENSION", "sends no server name (SNI)"),
        (
            "bootstrap.stocks.example",
            "unknown_server_name",
            "UNRECOGNIZED_NAME",
            "'bootstrap.stocks.example'",
        ),
        ("broker-x.orders.example", "unknown_server_name", "UNRECOGNIZED_NAME", "'broker-x.orders.example'"),
        ("broker-007.orders.example", "unknown_server_name", "UNRECOGNIZED_NAME", "broker-007"),
        ("broker-2147483648.orders.example", "unknown_server_name", "UNRECOGNIZED_NAME", "2147483648"),
    ],
)
@on_uvloop
async def test_a_client_of_no_cluster_gets_an_alert_and_the_log_has_the_names(
    files: Path, name: str | None, kind: str, alert: str, says: str
) -> None:
    async with both(files) as (orders, billing):
        with pytest.raises(ssl.SSLError, match=alert):
            await client(orders, trusting(files), name)
        [line] = await orders.logged(kind)
        assert says in line.message
        assert "bootstrap.billing.example, broker-$(node).billing.example" in line.message
        assert line.fields["connection"].startswith("127.0.0.1:")
        assert dict(orders.stats.problems) == {("", "bootstrap", "", kind): 1}
        assert all(each.proxied.problems.refused_any for each in (orders, billing))


@on_uvloop
async def test_a_refused_client_counts_for_the_only_cluster_of_a_port(files: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker, edge(broker, **named(files, "orders")) as klamm:
        with pytest.raises(ssl.SSLError):
            await client(klamm, trusting(files), None)
        await klamm.logged("no_server_name")
        assert dict(klamm.stats.problems) == {("orders", "bootstrap", "", "no_server_name"): 1}


@pytest.mark.parametrize(
    ("sent", "kind", "says"),
    [
        (b"\0\0\0\x1e\0\x12\0\3", "plain_from_client", "security.protocol"),
        (b"GET / HTTP/1.1\r\n\r\n", "plain_from_client", "HTTP"),
        (b"\x16\3\1\0\4\2\0\0\0", "client_tls_failed", "of type 2, and no ClientHello"),
        (b"\x16\3\1\0\0", "client_tls_failed", "a record of its handshake has 0 bytes"),
        (b"\x16\3\1\0\4\1\xff\0\0", "client_tls_failed", "more than 16384"),
    ],
)
@on_uvloop
async def test_bytes_that_are_no_handshake_are_told_apart(
    files: Path, sent: bytes, kind: str, says: str
) -> None:
    async with Broker(Cluster(), 1).listening() as broker, edge(broker, **named(files, "orders")) as klamm:
        one = await klamm.client()
        one.transport.write(sent)
        await one.ended()
        [line] = await klamm.logged(kind)
        assert says in line.message
        if kind == "client_tls_failed":
            assert one.received == b"\x15\3\3\0\2\2\x32"  # decode_error


@on_uvloop
async def test_a_made_up_name_is_escaped_and_cut_in_the_log(files: Path) -> None:
    name = b"\x1b[2J\xff" + b"x" * 200
    entry = b"\0" + len(name).to_bytes(2) + name
    extension = b"\0\0" + (len(entry) + 2).to_bytes(2) + len(entry).to_bytes(2) + entry
    body = b"\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0" + len(extension).to_bytes(2) + extension
    hello = b"\1" + len(body).to_bytes(3) + body
    async with Broker(Cluster(), 1).listening() as broker, edge(broker, **named(files, "orders")) as klamm:
        one = await klamm.client()
        one.transport.write(b"\x16\3\1" + len(hello).to_bytes(2) + hello)
        await one.ended()
        assert one.received == b"\x15\3\3\0\2\2\x70"  # unrecognized_name
        [line] = await klamm.logged("unknown_server_name")
        assert "'\\x1b[2j\\\\xffxxx" in line.message
        assert line.message.isprintable()
        assert "x" * 101 not in line.message


@on_uvloop
async def test_a_handshake_that_stops_is_given_up_and_a_health_check_is_no_problem(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Broker(Cluster(), 1).listening() as broker, edge(broker, **named(files, "orders")) as klamm:
        quiet = await klamm.client()
        quiet.send_fin()
        await quiet.ended()
        assert klamm.problems() == {}
        half = await klamm.client()
        half.transport.write(b"\x16\3\1\2\0\1")
        half.send_fin()
        await half.ended()
        [line] = await klamm.logged("client_tls_failed")
        assert "ended the connection within its ClientHello" in line.message
        monkeypatch.setattr(named_entrance, "HANDSHAKE_S", 0.1)
        slow = await klamm.client()
        slow.transport.write(b"\x16\3\1\2\0\1")
        await slow.ended()
        _, line = await klamm.logged("client_tls_failed", 2)
        assert "did not end it" in line.message


@on_uvloop
async def test_a_hello_may_come_in_any_pieces(files: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker, edge(broker, **named(files, "orders")) as klamm:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = trusting(files).wrap_bio(incoming, outgoing, server_hostname="bootstrap.orders.example")
        one = await klamm.client()
        for _ in range(3):
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
            sent = outgoing.read()
            for byte in sent:
                one.transport.write(bytes([byte]))
                await asyncio.sleep(0)
            if tls.version() and tls.cipher():
                break
            await one.changed.until(lambda: one.received or one.lost)
            incoming.write(one.received)
            one.received = b""
        await klamm.links(1)
        assert tls.getpeercert()


@on_uvloop
async def test_a_cluster_that_is_not_found_yet_ends_connections_so_that_they_come_again(files: Path) -> None:
    shared = shared_by(config.Limits())
    async with Broker(Cluster(), 1).listening() as broker, AsyncExitStack() as stack:
        orders = await stack.enter_async_context(edge(broker, shared=shared, **named(files, "orders")))
        made, log = proxied([("127.0.0.1", free_ports())], shared=shared, **named(files, "billing"))
        billing = await stack.enter_async_context(started(made, log, ready=False))
        with pytest.raises(ConnectionError):
            await client(orders, trusting(files), "bootstrap.billing.example")
        [line] = await orders.logged("cluster_not_found")
        assert "cluster billing has not been found yet" in line.message
        assert not billing.log.of("unknown_server_name")


@on_uvloop
async def test_a_node_that_klamm_has_not_met_is_led_to_a_broker_until_an_answer_names_it(files: Path) -> None:
    nodes = Cluster()
    async with Broker(nodes, 1).listening() as first, edge(first, **named(files, "orders")) as klamm:
        async with Broker(nodes, 5).listening() as later:
            one = await client(klamm, trusting(files), "broker-5.orders.example")
            [link] = await klamm.links(1)
            assert link.target is None  # a made-up id is not a label in metrics
            [line] = await klamm.logged("led_elsewhere")
            assert line.message.startswith("the broker of broker-5.orders.example is not known yet")
            assert 5 in addresses(await one.ask("Metadata", 12, ALL))
            await one.ended()
            two = await client(klamm, trusting(files), "broker-5.orders.example")
            await two.ask("Metadata", 12, ALL)
            [link] = await klamm.links(1)
            assert link.target == NodeKey("broker", 5)
            assert len(later.connections) > 0
            assert klamm.closed() == {"its broker is known now": 1}


@on_uvloop
async def test_made_up_nodes_are_no_labels_and_are_led_as_bootstrap(files: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker, edge(broker, **named(files, "orders")) as klamm:
        for number in range(1000, 1020):
            one = await client(klamm, trusting(files), f"broker-{number}.orders.example")
            await one.ask("Metadata", 12, ALL)
        assert set(klamm.stats.opened) == {("orders", "bootstrap")}
        assert set(klamm.proxied.topology.nodes) == {NodeKey("broker", 1)}


@on_uvloop
async def test_a_node_of_the_run_before_is_reached_by_its_name(files: Path, tmp_path: Path) -> None:
    nodes, listen = Cluster(), Listen("127.0.0.1", free_ports())
    settings = {"listen": listen, "state": tmp_path, **named(files, "orders")}
    async with Broker(nodes, 1).listening() as first, Broker(nodes, 2).listening():
        async with edge(first, **settings) as klamm:
            assert klamm.port_of(2) == TOLD
        del nodes.nodes[2]
        async with edge(first, **settings) as klamm:
            await client(klamm, trusting(files), "broker-2.orders.example")
            [link] = await klamm.links(1)
            await eventually(lambda: link.broker is not None)
            assert link.target == NodeKey("broker", 2)
            assert {line.kind for line in klamm.log.bad()} <= {"advertise_unresolved"}


@on_uvloop
async def test_each_cluster_has_its_own_certificate_and_asks_for_its_own_clients(
    files: Path, tmp_path: Path
) -> None:
    certificates_of.make(tmp_path, ["*.billing.example"])
    subject = certificates_of.of_client(tmp_path, "/CN=ada")
    nodes = Cluster()
    shared = shared_by(config.Limits())
    async with Broker(nodes, 1).listening() as broker, AsyncExitStack() as stack:
        orders = await stack.enter_async_context(edge(broker, shared=shared, **named(files, "orders")))
        ca = InputFile(str(tmp_path / "ca.pem"))
        settings = named(tmp_path, "billing", ca=ca)
        billing = await stack.enter_async_context(edge(broker, shared=shared, **settings))
        await client(orders, trusting(files), "bootstrap.orders.example")
        await client(billing, trusting(tmp_path, subject), "bootstrap.billing.example")
        [link] = await billing.links(1)
        assert link.principal == "User:CN=ada"
        bare = await client(billing, trusting(tmp_path), "bootstrap.billing.example")
        bare.send("Heartbeat", 4, {"group_id": "g", "member_id": "m"})
        await bare.changed.until(lambda: bare.fin or bare.lost)
        [line] = await billing.logged("client_tls_failed")
        assert "ssl.keystore.location" in line.message
        assert dict(billing.stats.problems) == {("billing", "bootstrap", "", "client_tls_failed"): 1}


@on_uvloop
async def test_other_authorities_are_taken_for_the_connections_of_their_cluster(
    files: Path, tmp_path: Path
) -> None:
    certificates_of.make(tmp_path, ["clients.example"])
    async with both(files) as (orders, billing):
        asks = named(files, "orders", ca=InputFile(str(tmp_path / "ca.pem")))["listen_tls"]
        take(prepare(orders.proxied, replace(orders.proxied.settings, listen_tls=asks)))
        bare = await client(orders, trusting(files), "bootstrap.orders.example")
        await bare.changed.until(lambda: bare.fin or bare.lost)
        await orders.logged("client_tls_failed")
        await client(billing, trusting(files), "bootstrap.billing.example")
        await billing.links(1)
        shown = certificates_of.of_client(tmp_path, "/CN=ada")
        await client(orders, trusting(files, shown), "bootstrap.orders.example")
        [link] = await orders.links(1)
        assert link.principal == "User:CN=ada"


@on_uvloop
async def test_a_session_of_one_cluster_opens_no_connection_to_another(files: Path) -> None:
    """Else a client without a certificate for a cluster would come in by its session with another one."""
    async with both(files) as (orders, _):
        context = trusting(files)
        context.maximum_version = ssl.TLSVersion.TLSv1_2

        def resumed(name: str, session: ssl.SSLSession | None) -> tuple[bool, ssl.SSLSession | None]:
            with socket.create_connection(("127.0.0.1", orders.port), timeout=10) as sock:
                with context.wrap_socket(sock, server_hostname=name, session=session) as tls:
                    return bool(tls.session_reused), tls.session

        again, session = await asyncio.to_thread(resumed, "bootstrap.orders.example", None)
        assert not again
        again, _ = await asyncio.to_thread(resumed, "bootstrap.orders.example", session)
        assert again
        again, _ = await asyncio.to_thread(resumed, "bootstrap.billing.example", session)
        assert not again


@on_uvloop
async def test_the_proxy_header_comes_before_the_name(files: Path) -> None:
    balancers = config.ProxyProtocol((Network("127.0.0.0/8"),))
    async with both(files, proxy_protocol=balancers) as (orders, billing):
        sock = socket.create_connection(("127.0.0.1", orders.port))
        sock.sendall(b"PROXY TCP4 192.0.2.7 192.0.2.8 5000 9093\r\n")
        sock.setblocking(False)
        await client(orders, trusting(files), "broker-1.billing.example", host=None, port=None, sock=sock)
        [link] = await billing.links(1)
        assert link.client_address == ("192.0.2.7", 5000)
        assert link.target == NodeKey("broker", 1)


@on_uvloop
async def test_a_cluster_that_goes_takes_its_names_and_the_last_one_closes_the_port(files: Path) -> None:
    async with both(files) as (orders, billing):
        with socket.create_connection(("127.0.0.1", orders.port)) as waiting:
            waiting.sendall(b"\x16")
            stays = await client(orders, trusting(files), "bootstrap.orders.example")
            billing.proxied.ports.close()
            with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
                await client(orders, trusting(files), "bootstrap.billing.example")
            await stays.ask("Metadata", 12, ALL)
            await client(orders, trusting(files), "bootstrap.orders.example")
            orders.proxied.ports.close()
            with pytest.raises(ConnectionRefusedError):
                await client(orders, trusting(files), "bootstrap.orders.example")
            assert not orders.proxied.shared.ports.at
            await stays.ask("Metadata", 12, ALL)


@on_uvloop
async def test_a_cluster_that_goes_while_its_port_is_opened_leaves_none_open(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, found = asyncio.Event(), list[socket.socket]()

    async def slowly(*where: Any) -> list[socket.socket]:
        found.extend(await bound(*where))
        await goes_on.wait()
        return found

    monkeypatch.setattr(shared_ports, "bound", slowly)
    made, _ = proxied([("127.0.0.1", free_ports())], **named(files, "orders"))
    opening = asyncio.create_task(made.ports.open_bootstrap())
    await eventually(lambda: found)
    made.ports.close()
    goes_on.set()
    with pytest.raises(OSError, match="cannot listen"):
        await opening
    assert [sock.fileno() for sock in found] == [-1]
    with pytest.raises(OSError, match="cannot listen"):
        await made.ports.open_bootstrap()
    assert not made.shared.ports.at
    await made.stop()


@on_uvloop
async def test_handshakes_with_a_cluster_that_goes_end_and_those_with_others_go_on(files: Path) -> None:
    async with both(files) as (orders, billing):
        half = []
        for name in ("bootstrap.orders.example", "bootstrap.billing.example"):
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = trusting(files).wrap_bio(incoming, outgoing, server_hostname=name)
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.do_handshake()
            one = await orders.client()
            one.transport.write(outgoing.read())
            await one.changed.until(lambda one=one: one.received)
            half.append((one, tls, incoming, outgoing))
        billing.proxied.ports.close()
        await half[1][0].ended()
        one, tls, incoming, outgoing = half[0]
        incoming.write(one.received)
        tls.do_handshake()
        one.transport.write(outgoing.read())
        await orders.links(1)
        assert not billing.proxied.links


@on_uvloop
async def test_other_names_are_taken_while_connections_go_on(files: Path) -> None:
    async with both(files) as (orders, _):
        one = await client(orders, trusting(files), "bootstrap.orders.example")
        await one.ask("Metadata", 12, ALL)
        names = config.Names(
            ServerName("first.orders.example"),
            NodePattern("n$(node).orders.example"),
            Port(9999),
        )
        take(prepare(orders.proxied, replace(orders.proxied.settings, names=names)))
        answer = addresses(await one.ask("Metadata", 12, ALL))
        assert answer == {1: ("n1.orders.example", 9999), 2: ("n2.orders.example", 9999)}
        await client(orders, trusting(files), "n2.orders.example")
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            await client(orders, trusting(files), "broker-2.orders.example")


@on_uvloop
async def test_a_taken_port_is_said(files: Path) -> None:
    async with Broker(Cluster(), 1).listening() as broker:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            made, _ = proxied(broker, listen=Listen("127.0.0.1", port), **named(files, "orders"))
            with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
                await made.follow()
            await made.stop()


@on_uvloop
async def test_names_that_do_not_resolve_are_said(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(host: str) -> None:
        if host.startswith("broker"):
            raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("klamm.proxy.cluster.client_ports.advertised.resolve", resolve)
    async with Broker(Cluster(), 3).listening() as broker, edge(broker, **named(files, "orders")) as klamm:
        [line] = await klamm.logged("advertise_unresolved")
        assert line.message.startswith("names.nodes: broker-3.orders.example does not resolve from here")
