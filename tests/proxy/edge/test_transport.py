"""Sockets before and behind klamm: what one end does, the other end sees."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import socket
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm import proxy
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy.edge import ends
from klamm.proxy.edge.link import Link
from tests.fakes.broker import Connection, Request, Waiting, framed, heartbeat
from tests.fakes.client import RESET
from tests.fakes.edge import Edge, cluster, parts_of_links
from tests.fakes.waiting import eventually, on_uvloop, turns

BEAT = {"group_id": "g", "member_id": "m"}


def beat(correlation_id: int) -> bytes:
    return request_frame(API[12], 4, correlation_id, "app", encode(BEAT, 12, 4, "request"))


def beaten(correlation_id: int) -> bytes:
    return framed(Request("Heartbeat", 4, correlation_id, "app", {}), {"error_code": 0})


async def read_all(sock: socket.socket) -> bytes:
    """The bytes up to the end."""
    data, loop = b"", asyncio.get_running_loop()
    while piece := await loop.sock_recv(sock, 65536):
        data += piece
    return data


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@on_uvloop
async def test_requests_and_answers_pass() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert broker.requests("Heartbeat")[0].client_id == "app"


HERE = str(Path(str(proxy.__file__)).parent)


class Timers(asyncio.SelectorEventLoop):
    """Remembers the files of klamm that ask for a time."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        files = [frame.filename for frame in traceback.extract_stack()]
        self.asked += [file for file in files if file.startswith(HERE)]
        return super().call_at(when, callback, *args, context=context)


def test_no_time_is_set_for_an_answer() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Timers)
        async with cluster() as (klamm, [broker]):
            client = await klamm.client(1)
            await client.ask("Heartbeat", 4, BEAT)
            assert loop.asked  # to connect
            loop.asked.clear()
            del broker.answers["Heartbeat"]
            client.send("Heartbeat", 4, BEAT)
            await broker.asked("Heartbeat", 2)
            await turns()
            assert loop.asked == []

    with asyncio.Runner(loop_factory=Timers) as runner:
        runner.run(test())


@on_uvloop
async def test_a_client_that_ends_still_gets_its_answers_and_then_the_end() -> None:
    async with cluster() as (klamm, [broker]):
        waiting = Waiting(broker)
        broker.stays_half_open = True
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        client.send_fin()
        await waiting.came()
        [(connection, _)] = waiting.asked
        await broker.until(lambda: connection.fin)
        assert client.ending == ""
        waiting.answer(27)
        assert (await client.answer("Heartbeat", 4))["error_code"] == 27
        connection.close()
        assert await client.ended() == "FIN"
        await klamm.empty()
        assert klamm.closed() == {"closed by client": 1}


@on_uvloop
async def test_a_broker_that_ends_ends_the_client_after_what_it_sent() -> None:
    async with cluster() as (klamm, [broker]):

        def last(connection: Connection, request: Request) -> None:
            if len(connection.requests) == 1:
                connection.transport.write(framed(request, heartbeat(connection, request)))
                connection.send_fin()

        broker.answers["Heartbeat"] = last
        broker.stays_half_open = True
        client = await klamm.client(1)
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        assert await client.ended() == "FIN"
        connection = broker.connections[-1]
        assert not connection.fin
        client.send("Heartbeat", 4, BEAT)  # a client may still send
        await broker.asked("Heartbeat", 2)
        broker.answers.clear()
        client.close()
        await broker.until(lambda: connection.fin)
        await klamm.empty()


@on_uvloop
async def test_an_end_right_after_the_connection_was_made_travels_on() -> None:
    async with cluster() as (klamm, [_broker]):
        for _ in range(20):
            client = await klamm.client(1)
            client.send("Heartbeat", 4, BEAT)
            client.send_fin()
            assert (await client.answer("Heartbeat", 4))["error_code"] == 0
            assert await client.ended() == "FIN"
            client.close()
        await klamm.empty()


@on_uvloop
async def test_a_reset_by_the_client_resets_the_broker() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        connection = broker.connections[-1]
        client.reset()
        await broker.until(lambda: connection.lost)
        assert isinstance(connection.error, ConnectionResetError)
        await klamm.empty()
        assert klamm.closed() == {"reset by client": 1}


@on_uvloop
async def test_a_reset_by_the_broker_resets_the_client() -> None:
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        broker.connections[-1].reset()
        assert await client.ended() == "RST"
        await klamm.empty()
        assert klamm.closed() == {"reset by broker": 1}


@on_uvloop
async def test_a_dead_broker_is_a_reset_at_once() -> None:
    async with cluster(2) as (klamm, [_, second]):
        await second.stop()
        client = await klamm.client(2)
        assert await client.ended() == "RST"
        [line] = klamm.log.of("broker_unreachable")
        assert line.message == f"127.0.0.1:{second.port} refuses connections"
        assert line.fields["broker"] == "2"
        assert line.fields["connection"].startswith("127.0.0.1:")


@on_uvloop
async def test_a_client_that_is_gone_before_it_was_accepted_does_no_harm() -> None:
    async with cluster() as (klamm, [broker]):
        for _ in range(50):
            (await klamm.client(1)).reset()
            (await klamm.client(1)).close()
        client = await klamm.client(1)
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
        client.close()
        await klamm.empty()
        await broker.until(lambda: all(connection.lost for connection in broker.connections))


@contextmanager
def held_dials(klamm: Edge) -> Iterator[asyncio.Event]:
    """Connections to brokers are made when the event is set."""
    dial, open_ = klamm.proxied.connect, asyncio.Event()

    async def later(link: Link, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        await open_.wait()
        return await dial(link, make)

    klamm.proxied.connect = later  # type: ignore[method-assign]
    yield open_
    klamm.proxied.connect = dial  # type: ignore[method-assign]


@on_uvloop
async def test_what_a_client_sends_before_the_broker_is_there_waits_in_the_socket() -> None:
    async with cluster() as (klamm, [_broker]):
        with held_dials(klamm) as open_:
            client = await klamm.client(1)
            part = {"index": 0, "records": bytes(16 << 20)}
            client.send("Produce", 9, {"acks": 1, "topic_data": [{"name": "t", "partition_data": [part]}]})
            [link] = await klamm.links(1)
            await eventually(lambda: link.client.early)
            await turns(200)
            assert len(b"".join(link.client.early)) <= 1 << 18  # one read
            assert client.transport.get_write_buffer_size() > 0
            open_.set()
            assert (await client.answer("Produce", 9))["responses"][0]["name"] == "t"


@pytest.mark.parametrize("data", [b"", beat(1)])
@on_uvloop
async def test_a_client_that_ends_before_the_broker_is_there_is_answered(data: bytes) -> None:
    async with cluster() as (klamm, [_broker]):
        with held_dials(klamm) as open_:
            client = await klamm.client(1)
            client.transport.write(data)
            client.send_fin()
            [link] = await klamm.links(1)
            await eventually(lambda: link.client.early or link.client.ended)
            await turns()
            open_.set()
            assert await client.ended() == "FIN"
            assert client.received == (beaten(1) if data else b"")
        await klamm.empty()
        assert klamm.closed() == {"closed by client": 1}
        assert klamm.problems() == {}


@on_uvloop
async def test_a_client_that_is_reset_before_the_broker_is_there_leaves_nothing_behind() -> None:
    async with cluster() as (klamm, [broker]):
        dialled = len(broker.connections)
        with held_dials(klamm) as open_:
            client = await klamm.client(1)
            await klamm.links(1)
            client.reset()
            await klamm.empty()
            open_.set()
            await broker.until(lambda: len(broker.connections) > dialled)
            await broker.until(lambda: broker.connections[-1].lost)
        assert klamm.closed() == {"reset by client": 1}


@on_uvloop
async def test_a_broker_that_ends_before_it_was_asked_ends_the_client() -> None:
    async with cluster() as (klamm, [broker]):
        for end, seen in ((Connection.close, "FIN"), (Connection.reset, "RST")):
            broker.on_connect = end
            client = await klamm.client(1)
            assert await client.ended() == seen
            client.close()
        await klamm.empty()


def at_once(port: int, data: bytes, reset: bool = False) -> socket.socket:
    """All of it has happened before klamm has accepted: connected, sent, ended."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(data)
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        sock.close()
    else:
        sock.shutdown(socket.SHUT_WR)
        sock.setblocking(False)
    return sock


@on_uvloop
async def test_what_was_sent_and_ended_before_klamm_accepted_is_answered() -> None:
    async with cluster() as (klamm, [_broker]):
        for _ in range(5):
            with at_once(klamm.port_of(1), beat(1) + beat(2)) as sock:
                answers = await read_all(sock)
            assert answers == beaten(1) + beaten(2)
        await klamm.empty()


@on_uvloop
async def test_a_client_that_was_reset_before_klamm_accepted_leaves_nothing_behind() -> None:
    async with cluster() as (klamm, [broker]):
        before = open_files()
        for _ in range(20):
            at_once(klamm.port_of(1), b"", reset=True)
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        client.close()
        await klamm.empty()
        await broker.until(lambda: all(connection.lost for connection in broker.connections))
        await eventually(lambda: open_files() <= before)


@on_uvloop
async def test_an_ended_connection_is_freed_at_once() -> None:
    """Cycles would wait for a collection of the oldest generation, which klamm makes rare."""
    async with cluster() as (klamm, [_broker]):
        gc.collect()
        before = parts_of_links()
        gc.disable()
        try:
            client = await klamm.client(1)
            await client.ask("Metadata", 12, {"topics": []})
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
async def test_an_answer_of_klamms_own_finds_no_client_to_write_to_after_the_broker_has_ended() -> None:
    async with cluster() as (klamm, [broker]):
        broker.stays_half_open = True
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        broker.connections[-1].send_fin()
        del broker.answers["Heartbeat"]
        assert await client.ended() == "FIN"
        client.transport.write(request_frame(API[18], 99, 7, "app", b""))
        client.send("Heartbeat", 4, BEAT)
        await broker.asked("Heartbeat", 2)
        client.close()
        await broker.until(lambda: broker.connections[-1].fin)
        await klamm.empty()
        assert klamm.log.bad() == []


@on_uvloop
async def test_a_broker_that_hangs_is_left_some_time_after_its_client_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ends, "PATIENCE_S", 0.01)
    async with cluster() as (klamm, [broker]):
        broker.stays_half_open = True
        broker.answers["Heartbeat"] = lambda connection, request: None
        client = await klamm.client(1)
        client.send("Heartbeat", 4, BEAT)
        await broker.asked("Heartbeat")
        client.send_fin()
        await klamm.empty()
        assert await client.ended() == "RST"
        assert klamm.closed() == {"closed by client": 1}


@on_uvloop
async def test_a_client_that_takes_nothing_is_left_some_time_after_klamm_has_closed_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ends, "PATIENCE_S", 0.01)
    async with cluster() as (klamm, [broker]):
        client = await klamm.client(1)
        client.transport.pause_reading()
        client.send("Heartbeat", 4, BEAT)
        await broker.asked("Heartbeat")
        [link] = await klamm.links(1)
        link.client.transport.write(bytes(32 * 1024 * 1024))
        link.finish("closed by hand")
        await klamm.empty()
        assert klamm.closed() == {"closed by hand": 1}


@on_uvloop
async def test_an_end_that_has_sent_something_meanwhile_is_waited_for() -> None:
    async with cluster() as (klamm, [broker]):
        broker.stays_half_open = True
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        client.send_fin()
        [link] = await klamm.links(1)
        assert link.broker is not None
        [led] = broker.serving("Heartbeat", "app")
        await broker.until(lambda: led.fin)
        now = link.broker.progress()
        link.broker.overdue((now[0] - 1, now[1]))
        await turns()
        assert client.ending == ""
        link.broker.overdue(now)
        assert await client.ended() == "RST"


@on_uvloop
async def test_a_peer_that_has_vanished_is_noticed_in_minutes() -> None:
    async with cluster() as (klamm, _):
        await (await klamm.client(1)).ask("Heartbeat", 4, BEAT)
        [link] = await klamm.links(1)
        assert link.broker is not None
        for side in (link.client, link.broker):
            sock = side.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            idle, apart, times = (
                sock.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert idle + apart * times == 120


@pytest.mark.parametrize("who", ["client", "broker"])
@on_uvloop
async def test_a_peer_that_the_kernel_gives_up_has_vanished(who: str) -> None:
    async with cluster() as (klamm, _):
        client = await klamm.client(1)
        await client.ask("Heartbeat", 4, BEAT)
        [link] = await klamm.links(1)
        side = link.client if who == "client" else link.broker
        assert side is not None
        side.transport.set_protocol(asyncio.Protocol())
        side.transport.abort()
        side.connection_lost(TimeoutError(errno.ETIMEDOUT, "Connection timed out"))
        await eventually(lambda: klamm.closed() == {f"{who} vanished": 1})
        [line] = await klamm.logged("vanished")
        assert who in line.message
