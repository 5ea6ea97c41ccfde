"""Connections on which nothing happens end, where limits.idle_s says so."""

from __future__ import annotations

import asyncio
import socket

from klamm.proxy import config
from klamm.proxy.config_types import Seconds
from klamm.proxy.edge.idle import idle_s
from tests.fakes.edge import cluster
from tests.fakes.waiting import eventually, on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}
SOON = config.Limits(idle_s=Seconds(0.3))


@on_uvloop
async def test_a_connection_without_a_byte_ends_and_one_that_is_used_stays() -> None:
    async with cluster(limits=SOON) as (klamm, _):
        idle, used = await klamm.client(), await klamm.client()
        await idle.ask("Heartbeat", 4, BEAT)
        ending = asyncio.create_task(idle.ended())
        while not ending.done():
            await used.ask("Heartbeat", 4, BEAT)
            await asyncio.sleep(0.02)
        assert ending.result() == "FIN"
        idle.close()
        await used.ask("Heartbeat", 4, BEAT)
        await eventually(lambda: klamm.closed() == {"was idle": 1})
        [line] = await klamm.logged("idle")
        assert (line.level, "limits.idle_s" in line.message) == ("info", True)


@on_uvloop
async def test_a_client_that_has_never_said_a_word_is_idle_too() -> None:
    async with cluster(limits=SOON) as (klamm, _):
        silent = await klamm.client()
        assert await silent.ended() == "FIN"
        silent.close()
        await eventually(lambda: klamm.closed() == {"was idle": 1})


@on_uvloop
async def test_a_connection_that_waits_for_an_answer_is_not_idle() -> None:
    async with cluster(limits=SOON) as (klamm, [broker]):
        asked: list[float] = []
        loop = asyncio.get_running_loop()
        broker.answers["Heartbeat"] = lambda *_: asked.append(loop.time())
        waiting, other = await klamm.client(), await klamm.client()
        waiting.send("Heartbeat", 4, BEAT)
        await eventually(lambda: asked)
        assert await other.ended() == "FIN"  # it came after the first
        other.close()
        assert waiting.ending == ""
        await eventually(lambda: klamm.closed() == {"was idle": 1})


def test_the_kernel_knows_when_the_last_byte_came() -> None:
    class Transport:
        def __init__(self, sock: socket.socket | None) -> None:
            self.sock = sock

        def get_extra_info(self, _: str) -> socket.socket | None:
            return self.sock

    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        sock, _ = server.accept()
        assert 0 <= idle_s(Transport(sock)) < 60  # type: ignore[arg-type]
        sock.close()
        client.close()
        assert idle_s(Transport(sock)) == 0  # type: ignore[arg-type]
    assert idle_s(Transport(None)) == 0  # type: ignore[arg-type]
    assert idle_s(None) == 0
