"""Clients that begin a request and do not go on, or take no answers: limits.frame_s and limits.unread_s."""

from __future__ import annotations

import asyncio
import socket

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy import config
from klamm.proxy.cluster import slow_clients
from klamm.proxy.cluster.slow_clients import LEAST, SlowClients
from klamm.proxy.config_types import Seconds
from klamm.proxy.edge.idle import moved
from klamm.proxy.edge.link import Link
from tests.fakes.client import Client
from tests.fakes.edge import Edge, cluster
from tests.fakes.waiting import eventually, on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}
LONG = 1_000_000.0  # s: no look comes by itself
BY_HAND = config.Limits(frame_s=Seconds(LONG), unread_s=Seconds(LONG))
SOON = config.Limits(frame_s=Seconds(0.2), unread_s=Seconds(0.2))
BEATING = request_frame(API["Heartbeat"], 4, 1, "app", encode(BEAT, 12, 4, "request"))
PRODUCE = request_frame(
    API["Produce"],
    3,
    1,
    "app",
    encode(
        {
            "acks": 1,
            "timeout_ms": 1000,
            "topic_data": [{"name": "t", "partition_data": [{"index": 0, "records": bytes(16 * LEAST)}]}],
            "transactional_id": None,
        },
        0,
        3,
        "request",
    ),
)


class Looks:
    """The looks of klamm at its links, one by one. `now`: seconds in limits."""

    def __init__(self, klamm: Edge, slow: SlowClients) -> None:
        self.klamm, self.slow = klamm, slow

    def at(self, now: float) -> None:
        before, self.slow.seen = self.slow.seen, {}
        self.slow.look(list(self.klamm.proxied.links), before, now * LONG)


def requests_of(klamm: Edge) -> Looks:
    return Looks(klamm, klamm.proxied.leaving.slow[0])


def answers_of(klamm: Edge) -> Looks:
    return Looks(klamm, klamm.proxied.leaving.slow[1])


async def sent(client: Client, link: Link, data: bytes) -> None:
    """klamm has read it."""
    before, size = link.client.reads, moved(link.client.transport)
    assert size is not None
    client.transport.write(data)

    def all_there() -> bool:
        now = moved(link.client.transport)
        return now is not None and now[0] == size[0] + len(data) and link.client.reads > before

    await eventually(all_there)


@pytest.mark.parametrize("first", [3, 9, 30, 2 * LEAST], ids="size header body long".split())
@on_uvloop
async def test_a_client_that_sends_the_rest_byte_by_byte_is_ended(first: int) -> None:
    async with cluster(limits=BY_HAND) as (klamm, _):
        client, looks = await klamm.client(), requests_of(klamm)
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker)
        await sent(client, link, PRODUCE[:first])
        for turn in range(10):
            looks.at(turn / 10)
            await sent(client, link, PRODUCE[first + turn : first + turn + 1])
        assert client.ending == ""
        looks.at(1.3)
        looks.at(2.4)
        assert await client.ended() in ("FIN", "RST")
        client.close()
        await eventually(lambda: klamm.closed() == {"slow_request": 1})
        [line] = await klamm.logged("slow_request")
        assert "limits.frame_s" in line.message
        assert line.fields["connection"].startswith("127.0.0.1:")
        assert klamm.problems() == {"slow_request": 1}


@on_uvloop
async def test_a_client_on_a_slow_line_has_as_long_as_its_frame_takes() -> None:
    async with cluster(limits=BY_HAND) as (klamm, [broker]):
        client, looks = await klamm.client(), requests_of(klamm)
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker)
        await sent(client, link, PRODUCE[:40])
        for turn, at in enumerate(range(40, len(PRODUCE) - LEAST, LEAST)):
            looks.at(0.9 * turn)
            await sent(client, link, PRODUCE[at : at + LEAST])
        looks.at(1000)
        client.transport.write(PRODUCE[at + LEAST :])
        await broker.asked("Produce")
        assert klamm.problems() == {}


@on_uvloop
async def test_small_requests_that_are_met_in_their_middle_again_and_again_are_not_slow() -> None:
    async with cluster(limits=BY_HAND) as (klamm, _):
        client, looks = await klamm.client(), requests_of(klamm)
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker)
        frame, client.correlation_id = BEATING, 1
        for cut in (3, 9, 14, len(frame) - 1):
            await sent(client, link, frame[:cut])
            for turn in range(5):
                looks.at(10 * cut + turn)
                await sent(client, link, frame[cut:] + frame[:cut])
                await client.answer("Heartbeat", 4)
            await sent(client, link, frame[cut:])
            await client.answer("Heartbeat", 4)
        looks.at(1000)
        looks.at(2000)
        assert klamm.problems() == {}


@on_uvloop
async def test_a_client_that_klamm_does_not_read_is_not_slow() -> None:
    async with cluster(limits=BY_HAND) as (klamm, _):
        client, looks = await klamm.client(), requests_of(klamm)
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker)
        await sent(client, link, PRODUCE[:40])
        link.client.pause("backpressure")
        for now in range(4):
            looks.at(now)
        assert klamm.problems() == {}
        link.client.resume("backpressure")
        looks.at(5)
        looks.at(5.5)
        assert klamm.problems() == {}


def slow_reader(klamm: Edge) -> socket.socket:
    """A client whose system takes little."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(("127.0.0.1", klamm.port))
    sock.settimeout(60)
    return sock


@on_uvloop
async def test_a_client_that_takes_no_answers_is_ended_and_one_that_takes_some_is_not() -> None:
    async with cluster(limits=BY_HAND) as (klamm, [broker]):
        looks, loop = answers_of(klamm), asyncio.get_running_loop()
        broker.answers["Heartbeat"] = lambda *_: {"throttle_time_ms": 0, "error_code": 0}
        with slow_reader(klamm) as silent:
            await klamm.links(1)
            with slow_reader(klamm) as taking:
                links = await klamm.links(2)
                for sock in (silent, taking):
                    for _ in range(4):
                        await loop.run_in_executor(None, sock.sendall, BEATING)
                await eventually(lambda: all(link.client.reads for link in links))
                for link in links:
                    link.client.transport.write(bytes(8 << 20))
                for turn in range(24):
                    looks.at(turn / 8)
                    if turn % 4 == 0:
                        await loop.run_in_executor(None, took, taking, 1 << 20)
                await eventually(lambda: klamm.closed() == {"unread_answers": 1})
                assert klamm.problems() == {"unread_answers": 1}
                [line] = await klamm.logged("unread_answers")
                assert "limits.unread_s" in line.message
                assert line.fields["connection"].endswith(f":{silent.getsockname()[1]}")


def took(sock: socket.socket, size: int) -> None:
    while size > 0:
        size -= len(sock.recv(min(size, 1 << 16)))


@on_uvloop
async def test_klamm_looks_by_itself() -> None:
    async with cluster(limits=SOON) as (klamm, _):
        for _ in range(2):  # also after all connections have ended
            client = await klamm.client()
            client.transport.write(PRODUCE[:100])
            assert await client.ended() in ("FIN", "RST")
            client.close()
            await klamm.empty()
        assert klamm.closed() == {"slow_request": 2}


@on_uvloop
async def test_without_limits_nobody_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "OFF_S", 0.001)
    async with cluster(limits=config.Limits(frame_s=None, unread_s=None)) as (klamm, _):
        client = await klamm.client()
        [link] = await klamm.links(1)
        await eventually(lambda: link.broker)
        await sent(client, link, PRODUCE[:40])
        for slow in klamm.proxied.leaving.slow:
            slow.look([link], {}, 0)
            slow.look([link], {}, 10 * LONG)
        assert klamm.problems() == {}
        klamm.proxied.leaving.limits = SOON  # as a reload does
        assert await client.ended() in ("FIN", "RST")
        assert klamm.problems() == {"slow_request": 1}
