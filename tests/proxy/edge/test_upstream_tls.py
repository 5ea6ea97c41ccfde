"""TLS between klamm and the brokers, plain TCP between klamm and its clients."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from klamm.decoders.schema import Side
from klamm.proxy import config
from klamm.proxy.cluster.conversation import Way
from klamm.proxy.cluster.own_requests.dialling import Dialler
from klamm.proxy.config_types import Address, Host, InputFile
from klamm.proxy.edge.tap import Tap
from tests.fakes import tls
from tests.fakes.broker import Broker, Cluster, Connection, Request, Waiting, framed
from tests.fakes.edge import Edge, edge, parts_of_links
from tests.fakes.waiting import eventually, on_uvloop, turns

BEAT = {"group_id": "g", "member_id": "m"}


@on_uvloop
async def test_the_connect_timeout_is_for_the_handshake_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        way = Way(0.05, ssl.create_default_context())
        with pytest.raises(OSError, match=r"does not answer within 0\.05 s"):
            await Dialler(way, {}).dial(Address(*silent.getsockname()), asyncio.Protocol)


@pytest.mark.parametrize("files", [("broker.pem", None), ("broker.crt", "broker.key")])
@on_uvloop
async def test_klamm_shows_its_certificate_with_the_key_in_the_same_file_or_in_another(
    context: ssl.SSLContext, certificates: Path, files: tuple[str, str | None]
) -> None:
    authority = certificates / "ca.pem"
    strict = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    strict.load_cert_chain(certificates / "broker.pem")
    strict.load_verify_locations(authority)
    strict.verify_mode = ssl.CERT_REQUIRED
    cert, key = (None if name is None else InputFile(str(certificates / name)) for name in files)
    settings = config.Tls(ca=InputFile(str(authority)), cert=cert, key=key)
    async with Broker(Cluster(), 1).listening(tls=strict) as broker, edge(broker, tls=settings) as klamm:
        await (await klamm.client()).ask("Heartbeat", 4, BEAT)
        assert broker.connections[-1].transport.get_extra_info("peercert")


@on_uvloop
async def test_where_nothing_is_verified_any_certificate_will_do(context: ssl.SSLContext) -> None:
    careless = config.Tls(server_name=Host("another.example"), verify=False)
    async with Broker(Cluster(), 1).listening(tls=context) as broker, edge(broker, tls=careless) as klamm:
        await (await klamm.client()).ask("Heartbeat", 4, BEAT)


@asynccontextmanager
async def secured(context: ssl.SSLContext, certificates: Path) -> AsyncIterator[tuple[Edge, Broker]]:
    broker = await Broker(Cluster(), 1).start(tls=context)
    trusting = config.Tls(ca=InputFile(str(certificates / "ca.pem")))
    try:
        async with edge(broker, tls=trusting) as klamm:
            yield klamm, broker
    finally:
        await broker.stop()


@on_uvloop
async def test_a_plain_client_reaches_a_tls_broker(context: ssl.SSLContext, certificates: Path) -> None:
    async with secured(context, certificates) as (klamm, broker):
        client = await klamm.client()
        [row] = (await client.ask("Metadata", 12, {"topics": []}))["brokers"]
        assert (row["host"], row["port"]) == ("127.0.0.1", klamm.port_of(1))
        assert broker.connections[-1].transport.get_extra_info("sslcontext") is not None


@on_uvloop
async def test_a_client_that_ends_gets_its_answers_then_both_sides_close(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, broker):
        waiting = Waiting(broker)
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        client.send("Heartbeat", 4, BEAT)
        client.send_fin()
        await waiting.came(2)
        await turns()
        waiting.answer()
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert client.ending == ""
        [(connection, request)] = waiting.asked
        second = framed(request, {"error_code": 0})
        connection.transport.write(second[:-1])
        await client.changed.until(lambda: len(client.received) == len(second) - 1)
        await turns()
        assert client.ending == ""
        connection.transport.write(second[-1:])
        assert (await client.answer("Heartbeat", 4))["error_code"] == 0
        assert await client.ended() == "FIN"
        await broker.until(lambda: connection.lost)
        await klamm.empty()
        assert klamm.closed() == {"closed by client": 1}


@on_uvloop
async def test_a_client_that_ends_while_a_listener_is_bound_gets_that_answer(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, broker):
        client = await klamm.client(1)
        broker.cluster.nodes[2] = ("127.0.0.1", 9)
        client.send("Metadata", 12, {"topics": []})
        client.send_fin()
        rows = (await client.answer("Metadata", 12))["brokers"]
        assert [row["node_id"] for row in rows] == [1, 2]
        assert await client.ended() == "FIN"
        await klamm.empty()


@on_uvloop
async def test_a_client_that_is_gone_in_the_middle_of_an_answer_is_no_fault_of_the_broker(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, broker):
        waiting = Waiting(broker, "Fetch")
        client = await klamm.client(1)
        client.send("Fetch", 11, {})
        await waiting.came()
        [(connection, request)] = waiting.asked
        [link] = await klamm.links(1)
        client.close()
        await eventually(lambda: link.client.ended)
        part = {"partition_index": 0, "records": bytes(3 << 20)}
        answer = framed(request, {"responses": [{"topic": "t", "partitions": [part]}]})
        connection.transport.write(answer[:-42])
        connection.transport.write(answer[-42:])
        await broker.until(lambda: connection.lost)
        await klamm.empty()
        assert klamm.closed() == {"closed by client": 1}
        assert klamm.log.bad() == []


@on_uvloop
async def test_a_client_that_ends_with_nothing_due_ends_the_broker_after_what_it_sent(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, broker):
        client = await klamm.client(1)
        part = {"index": 0, "records": bytes(3 << 20)}
        client.send("Produce", 9, {"acks": 0, "topic_data": [{"name": "t", "partition_data": [part]}]})
        client.send_fin()
        await broker.asked("Produce")
        await broker.until(lambda: broker.connections[-1].lost)
        assert await client.ended() == "FIN"


@on_uvloop
async def test_a_request_cut_short_by_fin_does_not_wait_for_its_answer(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, _broker):
        client = await klamm.client(1)
        client.transport.write(b"\0\0\1\0\0\x0c\0\4\0\0\0\1\0\3app\0\2g")
        client.send_fin()
        assert await client.ended() == "FIN"
        await klamm.empty()
        assert klamm.problems() == {"truncated": 1}


@on_uvloop
async def test_a_broker_that_ends_ends_the_client_after_what_it_sent(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, broker):

        def last(connection: Connection, request: Request) -> None:
            connection.transport.write(framed(request, {"error_code": 0}))
            connection.close()

        broker.answers["Heartbeat"] = last
        client = await klamm.client(1)
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert await client.ended() == "FIN"
        await klamm.empty()
        assert klamm.closed() == {"closed by broker": 1}


@on_uvloop
async def test_a_reset_is_a_reset_both_ways(context: ssl.SSLContext, certificates: Path) -> None:
    async with secured(context, certificates) as (klamm, broker):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        broker.connections[-1].reset()
        assert await client.ended() == "RST"
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        connection = broker.connections[-1]
        client.reset()
        await broker.until(lambda: connection.lost)
        await klamm.empty()
        assert klamm.closed() == {"reset by broker": 1, "reset by client": 1}


@on_uvloop
async def test_an_ended_connection_is_freed_at_once(context: ssl.SSLContext, certificates: Path) -> None:
    async with secured(context, certificates) as (klamm, _):
        gc.collect()
        before = parts_of_links()
        gc.disable()
        try:
            client = await klamm.client(1)
            await client.ask("Heartbeat", 4, BEAT)
            [link] = klamm.proxied.links
            assert parts_of_links() == before + 4
            del link
            client.close()
            await klamm.empty()
            await turns()
            assert parts_of_links() <= before
        finally:
            gc.enable()


@on_uvloop
async def test_a_broker_that_wants_a_certificate_is_named_in_one_line(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, _broker):
        strict = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        strict.load_cert_chain(certificates / "broker.pem")
        strict.load_verify_locations(certificates / "ca.pem")
        strict.verify_mode = ssl.CERT_REQUIRED
        with socket.create_server(("127.0.0.1", 0)) as server:
            klamm.proxied.topology.learn("broker", 1, *server.getsockname())
            refusing = asyncio.get_running_loop().run_in_executor(None, shake_hands, server, strict)
            client = await klamm.client(1)
            assert await client.ended() == "RST"
            await refusing
        [line] = klamm.log.of("tls_failed")
        assert line.message.startswith("the broker ended TLS (TLSV13_ALERT_CERTIFICATE_REQUIRED)")
        assert "clusters[].tls.cert" in line.message


def shake_hands(server: socket.socket, context: ssl.SSLContext) -> None:
    """One handshake that fails with an alert: uvloop's servers do not send it."""
    accepted, _ = server.accept()
    with contextlib.suppress(ssl.SSLError):
        context.wrap_socket(accepted, server_side=True).close()
    accepted.close()


class Counting(Tap):
    """Counts the bytes that came."""

    def __init__(self) -> None:
        self.taken = 0

    def came(self, side: Side, data: bytes, now: int, forwarded: bool) -> None:
        self.taken += len(data)

    def closed(self, why: str) -> None:
        pass


@on_uvloop
async def test_a_client_that_does_not_read_stops_the_broker(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(context, certificates) as (klamm, broker):
        size = 48 << 20
        broker.answers["Fetch"] = lambda *_: size.to_bytes(4, "big") + b"\0\0\0\1" + bytes(size - 4)
        client = await klamm.client(1)
        client.transport.pause_reading()
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker)
        assert link.broker is not None
        link.broker.tap = counting = Counting()
        client.send("Fetch", 4, {"topics": []})
        await eventually(lambda: link.broker and "backpressure" in link.broker.paused_for)
        before = counting.taken
        await turns(200)
        assert counting.taken == before < size // 2  # the rest fits the sockets' own buffers
        assert link.client.transport.get_write_buffer_size() < 1 << 20
        client.transport.resume_reading()
        while size + 4 > 0:
            await client.changed.until(lambda: client.received)
            size, client.received = size - len(client.received), b""


@on_uvloop
async def test_new_connections_to_brokers_trust_what_is_in_the_file_by_then(
    context: ssl.SSLContext, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.proxy.control.following.LOOK_S", 0.01)
    other, trusted = tmp_path / "other", tmp_path / "ca.pem"
    other.mkdir()
    tls.make(other)
    shutil.copy(certificates / "ca.pem", trusted)
    settings = config.Tls(ca=InputFile(str(trusted)))
    async with Broker(Cluster(), 1).listening(tls=context) as broker, edge(broker, tls=settings) as klamm:
        before = await klamm.client(1)
        await before.ask("Heartbeat", 4, BEAT)
        trusted.write_text("no certificate")
        [line] = await klamm.logged("tls_rejected")
        assert "to the brokers cannot be used, the ones before stay" in line.message
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        shutil.copy(other / "ca.pem", trusted)
        await klamm.logged("tls_loaded")
        assert await (await klamm.client(1)).ended() == "RST"
        [line] = await klamm.logged("broker_unreachable")
        assert "name the authority with --upstream-ca" in line.message
        await before.ask("Heartbeat", 4, BEAT)
        shutil.copy(certificates / "ca.pem", trusted)
        await klamm.logged("tls_loaded", 2)
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
