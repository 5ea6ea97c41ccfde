"""Connections beyond `limits.connects_per_second` wait; none is lost."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest

from klamm.proxy.config import Limits
from klamm.proxy.config_types import Count
from klamm.proxy.edge.accepting import listener, pace
from klamm.proxy.edge.accepting.listener import Listener
from klamm.proxy.edge.accepting.pace import Pace
from tests.fakes.client import Client
from tests.fakes.edge import Edge, cluster
from tests.fakes.waiting import eventually, on_uvloop, turns

LONG_S = 3600.0  # a second that does not end within a test


@pytest.fixture(autouse=True)
def endless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "SECOND", LONG_S)


def over(monkeypatch: pytest.MonkeyPatch, klamm: Edge, per_s: int) -> None:
    """The second is over, and the next ones take no time."""
    monkeypatch.setattr(pace, "SECOND", 0.0)
    klamm.proxied.shared.pace.limit(per_s)


async def asking(klamm: Edge, count: int, node_id: int | None = None) -> list[tuple[Client, Any]]:
    """Clients that are connected, and their questions."""
    clients = [await klamm.client(node_id) for _ in range(count)]
    return [(each, asyncio.ensure_future(each.ask("Heartbeat", 4, {}))) for each in clients]


def opened(klamm: Edge) -> int:
    return klamm.stats.opened.total()


@on_uvloop
async def test_connections_beyond_the_rate_wait_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(1, limits=Limits(connects_per_second=Count(2))) as (klamm, _):
        asked = await asking(klamm, 5)
        for _, answer in asked[:2]:
            assert (await answer)["error_code"] == 0
        await turns()
        assert (opened(klamm), klamm.problems()) == (2, {})
        over(monkeypatch, klamm, 3)
        for _, answer in asked[2:]:
            assert (await answer)["error_code"] == 0
        assert (opened(klamm), klamm.problems()) == (5, {"too_many_connects": 3})
        line = klamm.log.of("too_many_connects")[0]
        why = "more than 3 connections in a second: the others wait (limits.connects_per_second)"
        assert (line.level, line.message) == ("warning", why)


@on_uvloop
async def test_the_rate_is_of_all_ports_together(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(2, limits=Limits(connects_per_second=Count(2))) as (klamm, _):
        asked = [each for node_id in (1, 2, None) for each in await asking(klamm, 1, node_id)]
        await eventually(lambda: opened(klamm) == 2)
        await turns()
        assert opened(klamm) == 2
        over(monkeypatch, klamm, 3)
        for _, answer in asked:
            assert (await answer)["error_code"] == 0


@on_uvloop
async def test_ports_that_wait_have_their_turns_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    had: list[str] = []
    one = Pace(2)

    def turn(name: str, left: int) -> None:
        had.append(name)
        one.count()
        if left:
            one.wait(lambda: turn(name, left - 1))

    one.count()
    one.count()
    one.wait(lambda: turn("busy", 3))
    one.wait(lambda: turn("quiet", 0))
    await turns()
    assert had == []
    monkeypatch.setattr(pace, "SECOND", 0.0)
    one.limit(3)
    await eventually(lambda: len(had) == 5)
    assert had == ["busy", "quiet", "busy", "busy", "busy"]


@on_uvloop
async def test_no_second_has_more_than_the_rate() -> None:
    one = Pace(2)
    assert one.wait_s() == 0
    one.count()
    assert one.wait_s() == 0
    one.count()
    assert one.wait_s() == pytest.approx(LONG_S, abs=60)
    one.limit(3)
    assert one.wait_s() == 0
    one.limit(1)
    assert one.wait_s() > 0
    one.limit(0)
    assert one.wait_s() == 0


@on_uvloop
async def test_a_port_that_was_opened_without_a_rate_takes_one_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster(1) as (klamm, _):
        [(before, answer)] = await asking(klamm, 1)
        await answer
        klamm.proxied.shared.pace.limit(1)
        klamm.proxied.ports.keep_pace()
        asked = await asking(klamm, 3)
        await asked[0][1]
        await turns()
        assert opened(klamm) == 2
        assert (await before.ask("Heartbeat", 4, {}))["error_code"] == 0
        over(monkeypatch, klamm, 0)
        for _, answer in asked[1:]:
            assert (await answer)["error_code"] == 0
        assert klamm.log.bad() == []


@on_uvloop
async def test_a_client_that_waited_and_has_gone_takes_nobodys_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with cluster(1, limits=Limits(connects_per_second=Count(1))) as (klamm, _):
        asked = await asking(klamm, 3)
        await asked[0][1]
        asked[1][0].transport.abort()
        over(monkeypatch, klamm, 2)
        assert (await asked[2][1])["error_code"] == 0
        asked[1][1].cancel()


class NoFiles:
    """A listening socket for which the system has no file."""

    def __init__(self) -> None:
        self.real = socket.create_server(("127.0.0.1", 0))
        self.real.setblocking(False)
        self.fails = True

    def fileno(self) -> int:
        return self.real.fileno()

    def accept(self) -> Any:
        if self.fails:
            raise OSError(errno.EMFILE, "Too many open files")
        return self.real.accept()

    def close(self) -> None:
        self.real.close()


class Entered:
    def __init__(self) -> None:
        self.came: list[tuple[str, int]] = []
        self.told: list[str] = []

    async def enter(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        self.came.append(peer)
        sock.close()

    def takes(self, again: object) -> bool:
        return True

    def refused(self, peer: tuple[str, int], kind: str, why: str) -> None:
        self.told.append(kind)


@on_uvloop
async def test_a_port_whose_turn_finds_no_file_rests_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "NO_FILES_S", 0.01)
    sock, entered, full = NoFiles(), Entered(), Pace(1)
    full.count()
    one = Listener([sock], entered, full)  # type: ignore[list-item]
    try:
        with socket.create_connection(sock.real.getsockname()):
            await eventually(lambda: full.waiting)
            monkeypatch.setattr(pace, "SECOND", 0.0)
            full.limit(2)
            await eventually(lambda: entered.told)
            assert set(entered.told) == {"too_many_connections"}
            sock.fails = False
            await eventually(lambda: entered.came)
    finally:
        one.close()
