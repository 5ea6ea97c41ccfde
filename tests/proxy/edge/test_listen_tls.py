"""TLS between the clients and klamm."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm.proxy import config
from klamm.proxy.config_types import InputFile
from klamm.proxy.edge.accepting import entrance, listener
from klamm.proxy.edge.accepting.server_tls import Files, server_context
from tests.brokers import certificates as certificates_of
from tests.fakes.broker import Broker, Cluster, Connection, Request, framed
from tests.fakes.client import Client
from tests.fakes.edge import Edge, edge
from tests.fakes.waiting import eventually, on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}


def file(path: Path) -> InputFile:
    return InputFile(str(path))


def trusting(folder: Path, cert: bool = False) -> ssl.SSLContext:
    found = ssl.create_default_context(cafile=folder / "ca.pem")
    if cert:
        found.load_cert_chain(folder / "broker.pem")
    return found


@asynccontextmanager
async def secured(folder: Path, upstream: ssl.SSLContext | None = None, **more: Any) -> AsyncIterator[Edge]:
    """klamm with TLS listeners; `upstream`: the broker speaks TLS, too."""
    broker = await Broker(Cluster(), 1).start(tls=upstream)
    tls = None if upstream is None else config.Tls(ca=file(folder / "ca.pem"))
    try:
        async with edge(
            broker, tls=tls, listen_tls=config.ListenTls(file(folder / "broker.pem"), **more)
        ) as klamm:
            yield klamm
    finally:
        await broker.stop()


async def client(klamm: Edge, context: ssl.SSLContext | None, port: int = 0) -> Client:
    made = Client()
    name = None if context is None else "localhost"
    where = ("127.0.0.1", port or klamm.port)
    await asyncio.get_running_loop().create_connection(
        lambda: made, *where, ssl=context, server_hostname=name
    )
    klamm.clients.append(made)
    return made


async def gone(one: Client) -> None:
    """Wait until klamm has ended the connection; over TLS that is neither FIN nor RST."""
    await one.changed.until(lambda: one.fin or one.lost)


@pytest.mark.parametrize("both", [False, True], ids=["plain broker", "TLS broker"])
@on_uvloop
async def test_a_client_speaks_tls_to_every_port(
    context: ssl.SSLContext, certificates: Path, both: bool
) -> None:
    async with secured(certificates, context if both else None) as klamm:
        first = await client(klamm, trusting(certificates))
        [row] = (await first.ask("Metadata", 12, {"topics": []}))["brokers"]
        assert row["port"] == klamm.port_of(1)
        second = await client(klamm, trusting(certificates), row["port"])
        assert await second.ask("Heartbeat", 4, BEAT) == {"throttle_time_ms": 0, "error_code": 0}
        assert not klamm.log.bad()


@on_uvloop
async def test_large_frames_pass_both_ways_over_tls(context: ssl.SSLContext, certificates: Path) -> None:
    async with secured(certificates, context) as klamm:
        one = await client(klamm, trusting(certificates))
        part = {"index": 0, "records": bytes(9 << 20)}
        answer = await one.ask(
            "Produce", 9, {"acks": 1, "topic_data": [{"name": "t", "partition_data": [part]}]}
        )
        assert answer["throttle_time_ms"] == 0


@on_uvloop
async def test_a_client_that_does_not_trust_klamm_is_named_with_its_setting(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates) as klamm:
        with pytest.raises(ssl.SSLError):
            await client(klamm, ssl.create_default_context())
        [line] = await klamm.logged("client_tls_failed")
        assert "ssl.truststore.location" in line.message
        assert line.fields["connection"].startswith("127.0.0.1:")
        assert klamm.problems() == {"client_tls_failed": 1}


@on_uvloop
async def test_a_client_without_a_certificate_is_refused_where_one_is_asked_for(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates, ca=file(certificates / "ca.pem")) as klamm:
        one = await client(klamm, trusting(certificates))
        one.send("Heartbeat", 4, BEAT)
        await gone(one)
        [line] = await klamm.logged("client_tls_failed")
        assert "ssl.keystore.location" in line.message
        two = await client(klamm, trusting(certificates, cert=True))
        await two.ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_a_client_with_an_older_tls_than_asked_for_is_refused(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates, min_version="TLSv1.3") as klamm:
        old = trusting(certificates)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await client(klamm, old)
        [line] = await klamm.logged("client_tls_failed")
        assert "TLSv1.3" in line.message


@pytest.mark.parametrize(
    ("first", "says"),
    [
        (b"\0\0\0\x1e\0\x12\0\3", "security.protocol"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PROXY TCP4 ", "PROXY"),
    ],
)
@on_uvloop
async def test_a_client_without_tls_is_told_apart(
    context: ssl.SSLContext, certificates: Path, first: bytes, says: str
) -> None:
    async with secured(certificates) as klamm:
        one = await client(klamm, None)
        one.transport.write(first)
        await gone(one)
        [line] = await klamm.logged("plain_from_client")
        assert says in line.message


@on_uvloop
async def test_a_client_is_told_at_once_that_its_broker_without_tls_has_ended(
    context: ssl.SSLContext, certificates: Path
) -> None:
    """Behind the answers that came before, though one is due that will never come."""
    broker = await Broker(Cluster(), 1).start()
    broker.stays_half_open = True

    def first_alone(connection: Connection, request: Request) -> None:
        if connection.requests[0] is request:
            connection.transport.write(framed(request, {"error_code": 27}))
        else:
            connection.send_fin()

    broker.answers["Heartbeat"] = first_alone
    try:
        tls = config.ListenTls(file(certificates / "broker.pem"))
        async with edge(broker, listen_tls=tls) as klamm:
            one = await client(klamm, trusting(certificates))
            one.send("Heartbeat", 4, BEAT)
            one.send("Heartbeat", 4, BEAT)
            assert (await one.answer("Heartbeat", 4))["error_code"] == 27
            await gone(one)
            await klamm.empty()
            assert klamm.closed() == {"closed by broker": 1}
    finally:
        await broker.stop()


@on_uvloop
async def test_a_broker_that_ends_in_the_middle_of_a_request_is_no_fault_of_the_client(
    context: ssl.SSLContext, certificates: Path
) -> None:
    broker = await Broker(Cluster(), 1).start()
    try:
        tls = config.ListenTls(file(certificates / "broker.pem"))
        async with edge(broker, listen_tls=tls) as klamm:
            one = await client(klamm, trusting(certificates))
            await one.ask("Heartbeat", 4, BEAT)
            one.transport.write(b"\0\0\0\x1e\0\x0c\0\4\0\0\0\1" + bytes(10))
            [link] = await klamm.links(1)
            await eventually(lambda: link.session.requests.left)
            broker.connections[-1].transport.abort()
            await gone(one)
            await klamm.empty()
            assert klamm.log.of("truncated") == []
    finally:
        await broker.stop()


@on_uvloop
async def test_a_health_check_that_connects_and_ends_is_no_problem(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates) as klamm:
        one = await client(klamm, None)
        one.transport.write_eof()
        await gone(one)
        assert not klamm.log.bad()


@on_uvloop
async def test_a_handshake_that_is_not_ended_is_given_up(
    context: ssl.SSLContext, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "HANDSHAKE_S", 0.2)
    async with secured(certificates) as klamm:
        one = await client(klamm, None)
        one.transport.write(b"\x16\x03\x01\x02\x00\x01")
        await gone(one)
        [line] = await klamm.logged("client_tls_failed")
        assert "did not end it" in line.message


@on_uvloop
async def test_of_too_many_handshakes_the_oldest_is_given_up(
    context: ssl.SSLContext, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST", 3)
    async with secured(certificates) as klamm:
        held = [await client(klamm, None) for _ in range(5)]
        for one in held[:2]:
            await gone(one)
        good = await client(klamm, trusting(certificates))
        await good.ask("Heartbeat", 4, BEAT)
        await gone(held[2])
        assert not held[4].lost


@on_uvloop
async def test_new_connections_get_a_certificate_that_has_changed(
    context: ssl.SSLContext, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.proxy.control.following.LOOK_S", 0.01)
    from tests.fakes import tls

    other = tmp_path / "other"
    other.mkdir()
    tls.make(other)
    for name in ("broker.pem", "ca.pem"):
        shutil.copy(certificates / name, tmp_path / name)
    async with secured(tmp_path) as klamm:
        before = await client(klamm, trusting(certificates))
        (tmp_path / "broker.pem").write_text("no certificate")
        [line] = await klamm.logged("tls_rejected")
        assert "the ones before stay" in line.message
        await client(klamm, trusting(certificates))
        shutil.copy(other / "broker.pem", tmp_path / "broker.pem")
        await klamm.logged("tls_loaded")
        await client(klamm, trusting(other))
        await before.ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_a_klamm_that_ends_closes_the_handshakes_under_way(
    context: ssl.SSLContext, certificates: Path
) -> None:
    with socket.socket() as sock:
        async with secured(certificates) as klamm:
            sock.connect(("127.0.0.1", klamm.port))
            server = klamm.proxied.ports.by_port[klamm.port].server
            assert isinstance(server, listener.Listener)
            await eventually(lambda: server.entrants.count == 1)
        sock.settimeout(10)
        assert sock.recv(1) == b""


@on_uvloop
async def test_one_principal_cannot_take_the_places_of_all(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates, ca=file(certificates / "ca.pem")) as klamm:
        room = klamm.proxied.shared.room
        room.each_principal = 1
        first = await client(klamm, trusting(certificates, cert=True))
        await first.ask("Heartbeat", 4, BEAT)
        await gone(await client(klamm, trusting(certificates, cert=True)))
        [line] = klamm.log.of("too_many_connections")
        assert "no room for more than 1 at once with the principal User:CN=broker" in line.message
        assert dict(room.by_principal) == {"User:CN=broker": 1}
        await first.ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_a_klamm_that_has_drained_ends_without_a_word(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates) as klamm:
        await klamm.proxied.leaving.drain("drained", 1.0)
        await klamm.proxied.stop()  # and once more as the edge of the test ends
        assert not klamm.log.bad()


def expired(folder: Path, name: str) -> Path:
    """NAME.pem, a certificate for localhost by the authority there, and its key; it has expired at once."""
    of = certificates_of.of_client(folder, "/CN=late", name)
    sign = f"x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 0 -extfile names.ext"
    subprocess.run(
        ["openssl", *sign.split(), "-out", f"{name}.crt"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=30,
    )
    of.write_text((folder / f"{name}.key").read_text() + (folder / f"{name}.crt").read_text())
    return of


def shaken(context: ssl.SSLContext, port: int) -> bytes:
    """Connect as most clients do: Python's asyncio sends no alert."""
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        return tls.recv(1)


@on_uvloop
async def test_a_certificate_of_klamm_that_has_expired_is_told_by_the_client(
    context: ssl.SSLContext, certificates: Path
) -> None:
    late = expired(certificates, "late")
    shutil.copy(late, certificates / "late-broker.pem")
    broker = await Broker(Cluster(), 1).start()
    tls = config.ListenTls(file(certificates / "late-broker.pem"))
    try:
        async with edge(broker, listen_tls=tls) as klamm:
            with pytest.raises(ssl.SSLError):
                await asyncio.to_thread(shaken, trusting(certificates), klamm.port)
            [line] = await klamm.logged("client_tls_failed")
            assert "klamm's certificate (listen_tls.cert) has expired" in line.message
    finally:
        await broker.stop()


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("which", "says"),
    [
        ("namesake", "the client's certificate is not of an authority in listen_tls.ca"),
        ("late", "(certificate has expired): the client's certificate cannot be used"),
        ("other", "the client's certificate is not of an authority in listen_tls.ca"),
    ],
)
@on_uvloop
async def test_a_client_whose_certificate_is_refused_is_told_why(
    context: ssl.SSLContext,
    certificates: Path,
    tmp_path: Path,
    which: str,
    says: str,
    newest: ssl.TLSVersion,
) -> None:
    """By klamm's log, and by an alert of TLS: without one clients try for ever."""
    if which == "late":
        shown = expired(certificates, "late")
    else:
        authority = "klamm tests" if which == "namesake" else "another authority"
        certificates_of.make(tmp_path, ["localhost"], authority)
        shown = certificates_of.of_client(tmp_path, "/CN=app")
    async with secured(certificates, ca=file(certificates / "ca.pem")) as klamm:
        trusts = trusting(certificates)
        trusts.load_cert_chain(shown)
        trusts.maximum_version = newest
        with pytest.raises(ssl.SSLError, match="alert"):
            await asyncio.to_thread(shaken, trusts, klamm.port)
        [line] = await klamm.logged("client_tls_failed")
        assert says in line.message


@on_uvloop
async def test_the_authorities_of_clients_are_read_again_and_may_be_several(
    context: ssl.SSLContext, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.proxy.control.following.LOOK_S", 0.01)
    certificates_of.make(tmp_path, ["localhost"], "a new authority")
    new = trusting(certificates)
    new.load_cert_chain(certificates_of.of_client(tmp_path, "/CN=new"))
    authorities = tmp_path / "authorities.pem"
    authorities.write_text((certificates / "ca.pem").read_text())
    async with secured(certificates, ca=file(authorities)) as klamm:
        old = await client(klamm, trusting(certificates, cert=True))
        await old.ask("Heartbeat", 4, BEAT)
        with authorities.open("a") as more:
            more.write((tmp_path / "ca.pem").read_text())
        await klamm.logged("tls_loaded")
        for each in (new, trusting(certificates, cert=True)):
            await (await client(klamm, each)).ask("Heartbeat", 4, BEAT)
        authorities.write_text((tmp_path / "ca.pem").read_text())
        await klamm.logged("tls_loaded", 2)
        await old.ask("Heartbeat", 4, BEAT)
        await gone(await client(klamm, trusting(certificates, cert=True)))


@on_uvloop
async def test_a_client_that_fails_counts_as_one_that_has_come(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates) as klamm:
        with pytest.raises(ssl.SSLError):
            await client(klamm, ssl.create_default_context())
        await klamm.logged("client_tls_failed")
        assert klamm.proxied.problems.refused_any


@on_uvloop
async def test_links_that_lead_elsewhere_are_changes_as_where_kubernetes_mounts_secrets(
    context: ssl.SSLContext, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.proxy.control.following.LOOK_S", 0.01)
    for name, authority in (("before", "one"), ("after", "two")):
        (tmp_path / name).mkdir()
        certificates_of.make(tmp_path / name, ["localhost"], authority)
    mounted, data = tmp_path / "mounted", tmp_path / "mounted" / "..data"
    mounted.mkdir()
    data.symlink_to(tmp_path / "before")
    for name in ("broker.pem", "ca.pem"):
        (mounted / name).symlink_to(Path("..data") / name)
    async with secured(mounted) as klamm:
        await (await client(klamm, trusting(tmp_path / "before"))).ask("Heartbeat", 4, BEAT)
        (mounted / "new").symlink_to(tmp_path / "after")
        (mounted / "new").rename(data)
        await klamm.logged("tls_loaded")
        await (await client(klamm, trusting(tmp_path / "after"))).ask("Heartbeat", 4, BEAT)


def test_no_revocation_lists_are_looked_at(context: ssl.SSLContext, certificates: Path) -> None:
    files = Files(str(certificates / "broker.pem"), None, str(certificates / "ca.pem"))
    flags = server_context(files).verify_flags
    assert not flags & (ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF | ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN)


@on_uvloop
async def test_a_port_that_a_drain_has_closed_is_closed_once_more_at_the_end(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with secured(certificates) as klamm:
        for _ in range(2):
            klamm.proxied.ports.close()
        assert klamm.proxied.ports.closed
