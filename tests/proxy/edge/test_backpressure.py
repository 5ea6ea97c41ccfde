"""A side that does not read stops the other side, in a klamm of its own, and no memory grows for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.brokers.processes import Process, free_ports
from tests.e2e.klamm_process import COMMAND
from tests.fakes.broker import Broker, Cluster, Connection
from tests.fakes.client import Client, connect
from tests.fakes.waiting import eventually, on_uvloop

BEAT = {"group_id": "g", "member_id": "m"}
SIZE = 200 << 20
PIECE = bytes(1 << 20)
GROWTH = 16 << 20


class Klamm(Process):
    """`klamm run` and what memory it takes, in bytes."""

    def peak(self) -> int:
        """The most resident memory since `forget`."""
        for line in Path(f"/proc/{self.child.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM")

    def forget(self) -> None:
        Path(f"/proc/{self.child.pid}/clear_refs").write_text("5")


@asynccontextmanager
async def klamm(log: Path) -> AsyncIterator[tuple[Klamm, Broker, int]]:
    """A process in front of one broker, with the port that leads to it."""
    broker = await Broker(Cluster(), 1).start()
    first = free_ports(8)
    bootstrap, listen = f"127.0.0.1:{broker.port}", f"127.0.0.1:{first}-{first + 7}"
    process = Klamm([str(COMMAND), "run", bootstrap, "--listen", listen, "--admin", "none"], log)
    try:
        await eventually(lambda: "bootstrap.servers" in log.read_text())
        yield process, broker, first + 2
        assert process.stop() == 0
    finally:
        process.kill()
        await broker.stop()


async def beats(port: int, times: int) -> Client:
    client = await connect("127.0.0.1", port)
    for _ in range(times):
        assert (await client.ask("Heartbeat", 4, BEAT))["error_code"] == 0
    return client


async def steady(left: asyncio.Transport) -> int:
    """The bytes that wait to be sent, once they do not get fewer any more."""
    waiting = -1
    while waiting != (waiting := left.get_write_buffer_size()):
        await asyncio.sleep(0.1)
    return waiting


@on_uvloop
async def test_a_client_that_does_not_read_stops_the_broker_and_nobody_else(tmp_path: Path) -> None:
    async with klamm(tmp_path / "klamm.log") as (process, broker, port):

        def much(connection: Connection, _: object) -> None:
            connection.transport.write((SIZE + 4).to_bytes(4, "big") + b"\0\0\0\2")
            for _ in range(SIZE // len(PIECE)):
                connection.transport.write(PIECE)

        broker.answers["Fetch"] = much
        other = await beats(port, 50)
        slow = await beats(port, 1)
        slow.transport.pause_reading()
        process.forget()
        before = process.peak()
        slow.send("Fetch", 4, {"topics": []})
        await broker.asked("Fetch")
        [stopped] = broker.serving("Fetch", "app")
        assert await steady(stopped.transport) > SIZE // 2
        other.close()
        (await beats(port, 50)).close()
        slow.transport.resume_reading()
        left = SIZE + 8
        while left > 0:
            await slow.changed.until(lambda: slow.received)
            left, slow.received = left - len(slow.received), b""
        assert left == 0
        assert process.peak() - before < GROWTH
        slow.close()


@on_uvloop
async def test_a_broker_that_does_not_read_stops_the_client_and_nobody_else(tmp_path: Path) -> None:
    async with klamm(tmp_path / "klamm.log") as (process, broker, port):
        slow = await beats(port, 1)
        stopped = broker.serving("Heartbeat", "app")[-1]
        stopped.transport.pause_reading()
        process.forget()
        before = process.peak()
        start = stopped.received
        head = b"\0\0\0\4\0\0\0\2\0\3app\xff\xff\0\0\0\0\0\0" + b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0"  # acks=0
        records = SIZE.to_bytes(4, "big")
        slow.transport.write((len(head) + 4 + SIZE).to_bytes(4, "big") + head + records)
        for _ in range(SIZE // len(PIECE)):
            slow.transport.write(PIECE)
        assert await steady(slow.transport) > SIZE // 2
        (await beats(port, 50)).close()
        broker.on_data = lambda connection, data: None
        stopped.transport.resume_reading()
        await broker.until(lambda: stopped.received - start == len(head) + 8 + SIZE)
        assert process.peak() - before < GROWTH
        slow.close()
