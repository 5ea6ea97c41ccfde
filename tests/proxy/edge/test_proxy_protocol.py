"""Load balancers between the clients and klamm: whose connections begin with a PROXY header, and whose must
not.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm.proxy import config
from klamm.proxy.admin.api.configuration import plain
from klamm.proxy.config_types import Count, Listen, Network
from klamm.proxy.edge.accepting import acceptor, listener
from tests.fakes.broker import Broker, Cluster
from tests.fakes.client import Client, connect
from tests.fakes.edge import Edge, edge
from tests.fakes.waiting import eventually, on_uvloop
from tests.proxy.edge.test_listen_tls import BEAT, file, gone, trusting
from tests.proxy.edge.test_proxy_header import BAD, FOUR, HEADERS, SIX, T4, binary, text

HEADER = HEADERS["v1 TCP4"][0]


@asynccontextmanager
async def behind(*networks: str, **settings: Any) -> AsyncIterator[Edge]:
    """klamm, which trusts the load balancers of these networks; by default those on this machine."""
    broker = await Broker(Cluster(), 1).start()
    trusted = config.ProxyProtocol(tuple(map(Network, networks or ("127.0.0.0/8",))))
    try:
        async with edge(broker, proxy_protocol=trusted, **settings) as klamm:
            yield klamm
    finally:
        await broker.stop()


async def balanced(klamm: Edge, *header: bytes, port: int = 0, host: str = "127.0.0.1") -> Client:
    """A connection of a load balancer; the header comes in these pieces."""
    made = await connect(host, port or klamm.port)
    klamm.clients.append(made)
    for piece in header:
        made.transport.write(piece)
        await asyncio.sleep(0)
    return made


@pytest.mark.parametrize("name", HEADERS)
@on_uvloop
async def test_the_client_has_the_address_of_the_header(name: str) -> None:
    header, client = HEADERS[name]
    async with behind() as klamm:
        one = await balanced(klamm, header)
        await one.ask("Heartbeat", 4, BEAT)
        [link] = klamm.proxied.links
        own = one.transport.get_extra_info("sockname")
        assert link.client_address == (client or own)
        assert not klamm.log.bad()


@on_uvloop
async def test_it_is_the_address_in_rules_the_log_and_the_limit_of_connections() -> None:
    async with behind(limits=config.Limits(connections_per_address=Count(1))) as klamm:
        klamm.rule("- {api: Heartbeat, where: 'client == \"10.1.2.3\"', error: NOT_COORDINATOR}")
        first = await balanced(klamm, HEADER)
        assert (await first.ask("Heartbeat", 4, BEAT))["error_code"] == 16
        other = await balanced(klamm, text("TCP4 10.1.2.4 10.0.0.1 40001 9092"))
        assert (await other.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        again = await balanced(klamm, text("TCP4 10.1.2.3 10.0.0.1 40002 9092"))
        assert await again.ended() == "RST"
        [line] = await klamm.logged("too_many_connections")
        assert line.fields["connection"] == "10.1.2.3:40002"
        assert "from 10.1.2.3 (limits.connections_per_address)" in line.message


@on_uvloop
async def test_it_holds_at_the_ports_of_brokers_too() -> None:
    async with behind() as klamm:
        one = await balanced(klamm, HEADER, port=klamm.port_of(1))
        await one.ask("Heartbeat", 4, BEAT)
        [link] = klamm.proxied.links
        assert link.client_address == FOUR


@pytest.mark.parametrize("name", ["v1 TCP4", "v2 with a checksum in the middle"])
@on_uvloop
async def test_the_header_may_come_in_pieces_and_with_the_first_request(name: str) -> None:
    header, client = HEADERS[name]
    async with behind() as klamm:
        for cut in range(1, len(header), 7):
            one = await balanced(klamm, header[:cut])
            server = klamm.proxied.ports.by_port[klamm.port].server
            assert isinstance(server, listener.Listener)
            await eventually(lambda server=server: server.entrants.count == 1)
            one.transport.write(header[cut:])
            await one.ask("Heartbeat", 4, BEAT)
            [link] = klamm.proxied.links
            assert link.client_address == client
            one.transport.abort()
            await klamm.empty()
        assert not klamm.log.bad()


@on_uvloop
async def test_nothing_of_it_stays_on_the_way_of_a_byte() -> None:
    async with behind() as klamm:
        one = await balanced(klamm, HEADER)
        await one.ask("Heartbeat", 4, BEAT)
        [link] = klamm.proxied.links
        kind = type(link.client.transport)
        assert (kind.__module__, kind.__name__) == ("uvloop.loop", "TCPTransport")
        assert link.client.transport.get_protocol() is link.client
        server = klamm.proxied.ports.by_port[klamm.port].server
        assert isinstance(server, listener.Listener)
        assert not server.entrants.count


@pytest.mark.parametrize("name", ["v1 TCP4", "v2 TCP6", "v2 LOCAL"])
@on_uvloop
async def test_it_comes_before_tls(context: ssl.SSLContext, certificates: Path, name: str) -> None:
    header, client = HEADERS[name]
    tls = config.ListenTls(file(certificates / "broker.pem"))
    async with behind(listen_tls=tls) as klamm:
        one = await balanced(klamm, header)
        loop = asyncio.get_running_loop()
        over = await loop.start_tls(one.transport, one, trusting(certificates), server_hostname="localhost")
        assert over is not None
        one.transport = over
        await one.ask("Heartbeat", 4, BEAT)
        [link] = klamm.proxied.links
        assert link.client_address[0] == (client or ("127.0.0.1", 0))[0]
        plain = await balanced(klamm, header)
        plain.transport.write(b"\0\0\0\x1e\0\x12\0\3")
        await gone(plain)
        [line] = await klamm.logged("plain_from_client")
        assert line.fields["connection"].startswith(
            "[2001:" if client == SIX else client[0] if client else "127"
        )


@pytest.mark.parametrize("name", BAD)
@on_uvloop
async def test_a_bad_header_ends_its_connection_with_a_reason(name: str) -> None:
    header, says = BAD[name]
    async with behind() as klamm:
        one = await balanced(klamm, header)
        await gone(one)
        [line] = await klamm.logged("bad_proxy_header")
        assert line.message.startswith("the PROXY header of 127.0.0.1 cannot be used: ")
        assert says in line.message
        assert line.fields["connection"].startswith("127.0.0.1:")
        assert klamm.problems() == {"bad_proxy_header": 1}


@pytest.mark.parametrize("first", [b"\0\0\0\x1e\0\x12\0\3", b"\x16\x03\x01\2\0\1", b"GET / HTTP/1.1\r\n"])
@on_uvloop
async def test_a_balancer_that_sends_no_header_is_told_how_to(first: bytes) -> None:
    async with behind() as klamm:
        one = await balanced(klamm, first)
        await gone(one)
        [line] = await klamm.logged("bad_proxy_header")
        assert "127.0.0.1 is in proxy_protocol.from, but sends no PROXY header" in line.message
        assert "send-proxy-v2" in line.message


@pytest.mark.parametrize(
    ("sent", "says"),
    [(b"", "sent no PROXY header"), (b"PROXY TCP4", "began a PROXY header and did not end it")],
)
@on_uvloop
async def test_a_header_that_does_not_come_is_given_up(
    sent: bytes, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "HEADER_S", 0.1)
    async with behind() as klamm:
        one = await balanced(klamm, sent)
        await gone(one)
        [line] = await klamm.logged("bad_proxy_header")
        assert says in line.message


@on_uvloop
async def test_a_balancer_that_ends_within_a_header_is_told_and_its_health_check_is_not() -> None:
    async with behind() as klamm:
        check = await balanced(klamm)
        check.transport.write_eof()
        await gone(check)
        assert not klamm.log.bad()
        one = await balanced(klamm, binary(T4)[:20])
        one.transport.write_eof()
        await gone(one)
        [line] = await klamm.logged("bad_proxy_header")
        assert "ended within it" in line.message


@on_uvloop
async def test_of_too_many_on_their_way_in_the_oldest_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST", 3)
    async with behind() as klamm:
        held = [await balanced(klamm) for _ in range(5)]
        for one in held[:2]:
            await gone(one)
        good = await balanced(klamm, HEADER)
        await good.ask("Heartbeat", 4, BEAT)
        assert not held[4].lost


@on_uvloop
async def test_others_connect_as_before_and_their_header_is_no_kafka() -> None:
    async with behind("10.0.0.0/8", "fd00::/8") as klamm:
        one = await balanced(klamm)
        await one.ask("Heartbeat", 4, BEAT)
        [link] = klamm.proxied.links
        assert link.client_address == one.transport.get_extra_info("sockname")
        for header in (HEADER, binary(T4)):
            other = await balanced(klamm, header)
            await gone(other)
        lines = await klamm.logged("bad_size", 2)
        for line in lines:
            assert (
                "the PROXY protocol, and its address is not in clusters[].proxy_protocol.from" in line.message
            )
            assert line.fields["connection"].startswith("127.0.0.1:")


@on_uvloop
async def test_a_balancer_that_reaches_an_ipv6_listener_by_ipv4_is_in_its_ipv4_network() -> None:
    async with behind(listen=Listen("::", 0)) as klamm:
        one = await balanced(klamm, HEADER)
        await one.ask("Heartbeat", 4, BEAT)
        [link] = klamm.proxied.links
        assert link.client_address == FOUR
        other = await balanced(klamm, host="::1")
        await other.ask("Heartbeat", 4, BEAT)


def test_the_admin_api_shows_the_setting_as_it_is_written() -> None:
    assert plain(config.ProxyProtocol((Network("10.0.0.0/8"),))) == {"from": ["10.0.0.0/8"]}
