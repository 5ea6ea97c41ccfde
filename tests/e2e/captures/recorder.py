"""A pump that keeps what passes it: the bytes of each connection, both ways, in the order they came."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

Event = tuple[Literal["client", "broker"], bytes]


class Recorder:
    """One port before one broker. `connections` holds the events of each connection."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self.upstream = upstream
        self.connections: list[list[Event]] = []
        self.port = 0

    async def serve(self) -> asyncio.Server:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        events: list[Event] = []
        self.connections.append(events)
        upstream_reader, upstream_writer = await asyncio.open_connection(*self.upstream)
        await asyncio.gather(
            self._pump("client", events, reader, upstream_writer),
            self._pump("broker", events, upstream_reader, writer),
        )

    async def _pump(
        self,
        who: Literal["client", "broker"],
        events: list[Event],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        try:
            while data := await reader.read(1 << 18):
                events.append((who, data))
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass  # the other end has gone: what was recorded stays
        finally:
            writer.close()


@contextmanager
def recorders(upstreams: list[tuple[str, int]]) -> Iterator[list[Recorder]]:
    """A recorder before each address, on a loop in a thread of its own."""
    made = [Recorder(upstream) for upstream in upstreams]
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="recorders")
    thread.start()

    async def start() -> list[asyncio.Server]:
        return [await recorder.serve() for recorder in made]

    async def stop(servers: list[asyncio.Server]) -> None:
        for server in servers:
            server.close()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    servers = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    try:
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(stop(servers), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
