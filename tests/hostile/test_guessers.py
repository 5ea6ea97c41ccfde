"""Clients that guess at passwords keep no other address out."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path
from threading import Event

import pytest

from klamm.proxy.cluster.client_ports.tls_files import of_clients
from klamm.proxy.config import ListenTls
from klamm.proxy.config_types import InputFile
from klamm.proxy.edge.accepting import hashing, listener
from klamm.proxy.edge.accepting.entrance import Entrance
from klamm.proxy.edge.accepting.entrants import Entrants
from klamm.proxy.edge.accepting.hashing import Hashing
from tests.fakes.client import Client, connect
from tests.fakes.tls import make
from tests.fakes.waiting import eventually, on_uvloop, turns
from tests.proxy.edge.test_listen_sasl import guarded, log_in
from tests.proxy.sasl_ground import plain

GUESSERS, ANOTHER = "127.0.0.1", "127.0.0.2"
MOST = 8


async def guess(port: int) -> Client:
    one = await connect("127.0.0.1", port, GUESSERS)
    one.send("SaslHandshake", 1, {"mechanism": "PLAIN"})
    one.send("SaslAuthenticate", 2, {"auth_bytes": plain(password="a guess")})
    return one


@on_uvloop
async def test_a_client_of_another_address_authenticates_among_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST", MOST)
    free = Event()
    async with guarded(tmp_path) as (klamm, _):
        port = klamm.port_of(1)
        hashing.HASHING.submit(free.wait)  # as if the guesses before took long
        try:
            first = [await guess(port) for _ in range(MOST // 2)]
            good = await connect("127.0.0.1", port, ANOTHER)
            answer = asyncio.create_task(log_in(good))
            await eventually(lambda: good.correlation_id == 2)  # its password waits to be hashed
            more = [await guess(port) for _ in range(4 * MOST)]
            await eventually(lambda: sum(bool(one.ending) for one in first + more) >= 3 * MOST)
        finally:
            free.set()
        assert (await answer)["error_code"] == 0
        for one in (good, *first, *more):
            one.transport.abort()


@on_uvloop
async def test_addresses_have_their_turns_at_the_thread_that_hashes() -> None:
    free, turn, order = Event(), Hashing(), list[str]()
    hosts = ["a", "a", "a", "b", "c", "b"]

    async def ask(host: str) -> None:
        await turn.work(host, free.wait)
        order.append(host)

    asked = [asyncio.create_task(ask(host)) for host in hosts]
    await turns()
    asked[2].cancel()
    free.set()
    await asyncio.gather(*asked, return_exceptions=True)
    assert order == ["a", "a", "b", "c", "b"]
    assert (turn.busy, turn.waiting) == (False, {})


@on_uvloop
async def test_one_that_is_given_up_at_its_turn_passes_the_turn_on() -> None:
    free, turn = Event(), Hashing()
    first, second = (asyncio.create_task(turn.work("a", free.wait)) for _ in range(2))
    await turns()
    first.add_done_callback(lambda _: second.cancel())  # as its turn comes
    third = asyncio.create_task(turn.work("b", free.wait))
    free.set()
    assert await third
    assert second.cancelled()


@on_uvloop
async def test_one_that_is_given_up_before_it_has_begun_is_closed() -> None:
    entrants, sock = Entrants(4), socket.socket()
    entrants.let("a", sock, asyncio.Event().wait())  # type: ignore[arg-type]
    entrants.cancel()
    await eventually(lambda: not entrants.count)
    assert sock.fileno() == -1


@on_uvloop
@pytest.mark.parametrize("tls", [False, True])
async def test_one_that_is_given_up_as_it_is_made_is_told_its_end(tmp_path: Path, tls: bool) -> None:
    """Else its link would count as open for ever."""
    entrants = Entrants(4)
    ends: list[Exception | None] = []

    class Made(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            entrants.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            ends.append(exc)

    shown = None
    if tls:
        make(tmp_path)
        shown = of_clients(ListenTls(InputFile(str(tmp_path / "broker.pem"))))
    entrance = Entrance(refused=lambda *why: None, make=lambda arrival: Made(), tls=shown)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        sock, peer = server.accept()
        sock.setblocking(False)
        coming = asyncio.create_task(asyncio.to_thread(shake_hands, client, tmp_path)) if tls else None
        entrants.let("a", sock, entrance.enter(sock, peer))
        await eventually(lambda: not entrants.count)
        await eventually(lambda: ends)
        assert ends == [None]
        assert sock.fileno() == -1
        if coming is not None:
            await coming


def shake_hands(client: socket.socket, certificates: Path) -> None:
    """And wait for the end, which may come before."""
    trusted = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    with trusted.wrap_socket(client, do_handshake_on_connect=False, server_hostname="localhost") as shaking:
        with suppress(OSError):
            shaking.do_handshake()
            shaking.recv(1)


@on_uvloop
async def test_the_oldest_of_the_address_with_most_is_given_up() -> None:
    ended: list[str] = []

    async def come(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    entrants = Entrants(4)

    def let(name: str) -> None:
        entrants.let(name[0], socket.socket(), come(name))

    for name in ("b1", "a1", "a2", "a3"):
        let(name)
    await turns()
    for name in ("c1", "c2"):
        let(name)
        await turns()
    assert ended == ["a1", "a2"]
    let("d1")  # a has one left, b one, c two
    await turns()
    assert ended == ["a1", "a2", "c1"]
    assert entrants.count == 4
    entrants.cancel()
    await eventually(lambda: not entrants.count)
    assert entrants.by_host == {}
