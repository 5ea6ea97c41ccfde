"""The principal of a client with a certificate: in rules, log, live stream, metrics and captures."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.choosing import chosen
from klamm.captures.exchanges import exchanges
from klamm.captures.storage.reading import read
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.decoders.schema import defaults
from klamm.proxy import config
from klamm.proxy.config_types import Filter, Folder
from klamm.proxy.control.capturing import Capturing
from klamm.proxy.control.exchange import Seen, exchange_of
from klamm.rules.expressions import parse
from klamm.rules.plan import Wishes
from tests.fakes.broker import Broker, Cluster
from tests.fakes.edge import Edge, edge
from tests.fakes.waiting import on_uvloop
from tests.proxy.edge.test_listen_tls import BEAT, client, file, gone, trusting

BROKER = "User:CN=broker"  # the subject of the certificate that the tests have


@asynccontextmanager
async def asking(folder: Path, **more: Any) -> AsyncIterator[Edge]:
    """klamm, which asks clients for a certificate."""
    broker = await Broker(Cluster(), 1).start()
    tls = config.ListenTls(file(folder / "broker.pem"), ca=file(folder / "ca.pem"))
    try:
        async with edge(broker, listen_tls=tls, **more) as klamm:
            yield klamm
    finally:
        await broker.stop()


@on_uvloop
async def test_an_exchange_has_the_principal_of_its_client(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with asking(certificates, wishes=Wishes(logged=None)) as klamm:
        one = await client(klamm, trusting(certificates, cert=True))
        await one.ask("Heartbeat", 4, BEAT)
        [fields] = klamm.log.exchanges
        assert fields["principal"] == BROKER
        assert exchange_of(Seen(0.0, fields)).principal == BROKER


@pytest.mark.parametrize("ask", [False, True], ids=["TLS without a certificate", "plain"])
@on_uvloop
async def test_a_client_without_a_certificate_has_none(
    context: ssl.SSLContext, certificates: Path, ask: bool
) -> None:
    broker = await Broker(Cluster(), 1).start()
    tls = None if ask else config.ListenTls(file(certificates / "broker.pem"))
    try:
        async with edge(broker, listen_tls=tls, wishes=Wishes(logged=None)) as klamm:
            one = await client(klamm, None if ask else trusting(certificates))
            await one.ask("Heartbeat", 4, BEAT)
            [fields] = klamm.log.exchanges
            assert "principal" not in fields
            assert not klamm.stats.principals
    finally:
        await broker.stop()


@on_uvloop
async def test_connections_are_counted_by_principal(context: ssl.SSLContext, certificates: Path) -> None:
    async with asking(certificates) as klamm:
        some = [await client(klamm, trusting(certificates, cert=True)) for _ in range(3)]
        for one in some:
            await one.ask("Heartbeat", 4, BEAT)
        assert klamm.stats.principals == {("kafka", BROKER): 3}
        some[0].transport.abort()
        await klamm.links(2)
        assert klamm.stats.principals == {("kafka", BROKER): 2}


@pytest.mark.parametrize(("principal", "is_cut"), [(f"'{BROKER}'", True), ("'User:CN=a*'", False)])
@on_uvloop
async def test_a_rule_selects_by_principal(
    context: ssl.SSLContext, certificates: Path, principal: str, is_cut: bool
) -> None:
    async with asking(certificates) as klamm:
        klamm.rule(f"  - {{api: Heartbeat, principal: {principal}, disconnect: {{when: before}}}}")
        one = await client(klamm, trusting(certificates, cert=True))
        if is_cut:
            one.send("Heartbeat", 4, BEAT)
            await gone(one)
        else:
            await one.ask("Heartbeat", 4, BEAT)


@on_uvloop
async def test_a_connection_may_be_refused_by_its_principal(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with asking(certificates) as klamm:
        klamm.rule(f"  - {{event: connect, where: 'principal == \"{BROKER}\"', down: true}}")
        await gone(await client(klamm, trusting(certificates, cert=True)))


@on_uvloop
async def test_a_problem_of_a_connection_has_its_principal(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with asking(certificates) as klamm:
        one = await client(klamm, trusting(certificates, cert=True))
        one.transport.write(b"\x7f\xff\xff\xff" + bytes(8))
        await gone(one)
        [line] = [line for line in klamm.log.bad() if line.kind != "client_tls_failed"]
        assert line.fields["principal"] == BROKER


@on_uvloop
async def test_a_capture_has_the_principal_of_each_connection(
    context: ssl.SSLContext, certificates: Path, tmp_path: Path
) -> None:
    async with asking(certificates) as klamm:
        settings = config.Capture(Folder(str(tmp_path)), filter=Filter(f'principal == "{BROKER}"'))
        capturing = Capturing(settings, klamm.log)  # type: ignore[arg-type]
        capturing.start()
        klamm.proxied.capture(capturing)
        one = await client(klamm, trusting(certificates, cert=True))
        await one.ask("Heartbeat", 4, BEAT)
        one.transport.abort()
        await klamm.empty()
        await capturing.stop()
    rows = list(read(tmp_path))
    assert {row.connection.principal for row in rows if row.connection} == {BROKER}
    found = [
        one.request.api.name
        for one in chosen(exchanges(rows), parse('principal == "User:CN=broker"'))
        if one.request
    ]
    assert found == ["Heartbeat"]
    assert not list(chosen(exchanges(rows), parse('principal == "User:CN=other"')))


@on_uvloop
async def test_a_certificate_that_cannot_be_read_ends_its_connection(
    context: ssl.SSLContext, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tls: Any) -> str:
        raise ValueError("a value that is cut short")

    async with asking(certificates) as klamm:
        monkeypatch.setattr("klamm.proxy.cluster.principals.client_principal", fail)
        await gone(await client(klamm, trusting(certificates, cert=True)))
        await klamm.logged("defect")


def _beaten(context: ssl.SSLContext, port: int, session: ssl.SSLSession | None) -> tuple[bool, Any]:
    """Ask for a heartbeat: was the session resumed, and the session for the next time."""
    body = encode({**defaults(API["Heartbeat"].request, 4), **BEAT}, "Heartbeat", 4, "request")
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost", session=session) as tls,
    ):
        tls.sendall(request_frame(API["Heartbeat"], 4, 1, "app", body))
        assert tls.recv(4)
        return bool(tls.session_reused), tls.session


@on_uvloop
async def test_a_session_that_is_resumed_has_its_principal(
    context: ssl.SSLContext, certificates: Path
) -> None:
    async with asking(certificates, wishes=Wishes(logged=None)) as klamm:
        trusts = trusting(certificates, cert=True)
        is_resumed, session = await asyncio.to_thread(_beaten, trusts, klamm.port, None)
        assert not is_resumed
        is_resumed, _ = await asyncio.to_thread(_beaten, trusts, klamm.port, session)
        assert is_resumed
        assert [fields["principal"] for fields in klamm.log.exchanges] == [BROKER, BROKER]


@on_uvloop
async def test_new_files_end_the_sessions_that_could_be_resumed(
    context: ssl.SSLContext, certificates: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.proxy.control.following.LOOK_S", 0.01)
    for name in ("broker.pem", "ca.pem"):
        (tmp_path / name).write_bytes((certificates / name).read_bytes())
    async with asking(tmp_path) as klamm:
        trusts = trusting(certificates, cert=True)
        _, session = await asyncio.to_thread(_beaten, trusts, klamm.port, None)
        (tmp_path / "ca.pem").write_bytes((certificates / "ca.pem").read_bytes() + b"\n")
        await klamm.logged("tls_loaded")
        is_resumed, _ = await asyncio.to_thread(_beaten, trusts, klamm.port, session)
        assert not is_resumed


LISTED = "  - {event: connect, principal: ['!User:CN=orders,O=Example', '!%s'], refuse: true}"


@pytest.mark.parametrize("named", [BROKER, "User:CN=other"])
@on_uvloop
async def test_a_rule_refuses_all_but_some_principals(
    context: ssl.SSLContext, certificates: Path, named: str
) -> None:
    async with asking(certificates) as klamm:
        klamm.rule(LISTED % named)
        one = await client(klamm, trusting(certificates, cert=True))
        if named == BROKER:
            await one.ask("Heartbeat", 4, BEAT)
        else:
            await gone(one)


@on_uvloop
async def test_such_a_rule_refuses_clients_without_a_principal() -> None:
    broker = await Broker(Cluster(), 1).start()
    try:
        async with edge(broker) as klamm:
            klamm.rule(LISTED % BROKER)
            await gone(await client(klamm, None))
    finally:
        await broker.stop()
