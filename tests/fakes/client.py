"""A client of few words: frames as they are, and how the connection ended."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, cast

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import request_frame, response_header_version
from tests.fakes.waiting import Signal

RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: closing sends RST
CLIENT_ID = "app"


class Client(asyncio.Protocol):
    """`received` holds what has come and was not taken."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.received = b""
        self.changed = Signal()
        self.fin = False  # the other end has sent its last byte
        self.lost = False
        self.error: Exception | None = None
        self.correlation_id = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.changed.send()

    def eof_received(self) -> bool:
        self.fin = True
        self.changed.send()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost, self.error = True, exc
        self.changed.send()

    def send(self, name: str, version: int, values: dict[str, Any] | None = None) -> int:
        """A request; its correlation id."""
        self.correlation_id += 1
        api = API[name]
        body = encode(values or {}, api.key, version, "request")
        self.transport.write(request_frame(api, version, self.correlation_id, CLIENT_ID, body))
        return self.correlation_id

    async def frame(self) -> bytes:
        """The next frame, its size included."""
        await self.changed.until(lambda: len(self.received) >= 4 + self._size() or self.fin or self.lost)
        end = 4 + self._size()
        assert len(self.received) >= end, f"the connection ended ({self.ending}) in {self.received!r}"
        frame, self.received = self.received[:end], self.received[end:]
        return frame

    def _size(self) -> int:
        return int.from_bytes(self.received[:4], "big") if len(self.received) >= 4 else 4

    async def answer(self, name: str, version: int) -> dict[str, Any]:
        """The values of the next frame."""
        frame = await self.frame()
        assert int.from_bytes(frame[4:8], "big") <= self.correlation_id
        start = 9 if response_header_version(API[name], version) else 8
        return decode(frame[start:], name, version, "response")

    async def ask(self, name: str, version: int, values: dict[str, Any] | None = None) -> dict[str, Any]:
        self.send(name, version, values)
        return await self.answer(name, version)

    @property
    def ending(self) -> str:
        """How the other end has ended: "RST", "FIN", or "" for not yet."""
        if self.error is not None:
            return "RST"
        return "FIN" if self.fin else ""

    async def ended(self) -> str:
        """Wait for the other end to end."""
        await self.changed.until(lambda: self.fin or self.lost)
        return self.ending

    def send_fin(self) -> None:
        self.transport.write_eof()

    def close(self) -> None:
        self.transport.close()

    def reset(self) -> None:
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.abort()


async def connect(host: str, port: int, source: str | None = None) -> Client:
    """A new client. Raises OSError."""
    loop = asyncio.get_running_loop()
    local = None if source is None else (source, 0)
    _, client = await loop.create_connection(Client, host, port, local_addr=local)
    return client
