"""The floor: a proxy that only carries bytes, on klamm's event loop. Arguments: its port, the broker's."""

import asyncio
import gc
import sys
from typing import cast

import uvloop


class Pump(asyncio.Protocol):
    """One side of a connection; what comes in here goes out at `other`."""

    def __init__(self, other: "Pump | None" = None, upstream_port: int = 0) -> None:
        self.transport: asyncio.Transport
        self._upstream_port = upstream_port
        self._other = other
        self._early: list[bytes] = []  # uvloop begins to read even where connection_made pauses

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        if self._other is None:
            _dials.add(asyncio.ensure_future(self._dial()))

    async def _dial(self) -> None:
        try:
            _, self._other = await asyncio.get_running_loop().create_connection(
                lambda: Pump(self), "127.0.0.1", self._upstream_port
            )
        except OSError:
            self.transport.abort()
        else:
            self._other.transport.writelines(self._early)

    def data_received(self, data: bytes) -> None:
        if self._other is None:
            self._early.append(data)
        else:
            self._other.transport.write(data)

    def pause_writing(self) -> None:
        if self._other is not None:
            self._other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self._other is not None:
            self._other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._other is not None:
            self._other.transport.close()


_dials: set[asyncio.Future[None]] = set()


async def _serve(listen_port: int, upstream_port: int) -> None:
    server = await asyncio.get_running_loop().create_server(
        lambda: Pump(upstream_port=upstream_port), "127.0.0.1", listen_port
    )
    gc.freeze()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2])))
