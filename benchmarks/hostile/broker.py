"""Two brokers, each in a process of its own: the attacked one does not hold up the other by itself.

They answer every request with the default values of its response, but for JoinGroup, which they never answer:
whatever comes behind it on a connection waits.
"""

import asyncio
import contextlib
import multiprocessing
import socket
import struct
from collections.abc import Iterator
from typing import Any

from klamm.decoders import API, encode
from klamm.decoders.failures import UnknownApi
from klamm.decoders.headers import read_request_header, request_header_version, response_frame

PREFIX = struct.Struct(">hh").unpack_from
METADATA, JOIN_GROUP, API_VERSIONS = 3, 11, 18
ATTACKED, OTHER = 1, 2  # node ids
BACKLOG = 1024  # connections that wait until one of these processes has its turn


class Connection(asyncio.Protocol):
    """Cuts requests out of what comes."""

    def __init__(self, ports: tuple[int, ...]) -> None:
        self.ports, self.rest, self.silent = ports, bytearray(), False
        self.transport: Any = None
        self.known: dict[bytes, bytes] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.rest += data
        pos, answers = 0, []
        while len(self.rest) - pos >= 4:
            end = pos + 4 + int.from_bytes(self.rest[pos : pos + 4], "big")
            if end > len(self.rest):
                break
            try:
                answers.append(self.answer(bytes(self.rest[pos + 4 : end])))
            except (struct.error, ValueError, UnknownApi):  # Kafka does the same
                self.transport.close()
                return
            pos = end
        del self.rest[:pos]
        self.transport.write(b"".join(answers))

    def answer(self, frame: bytes) -> bytes:
        key, version = PREFIX(frame)
        if self.silent or key == JOIN_GROUP:
            self.silent = True
            return b""
        body = self.known.get(frame[:4])
        if body is None:
            body = self.known[frame[:4]] = self.made(key, version)
        header = read_request_header(frame, request_header_version(API[key], version))
        return response_frame(API[key], version, header.correlation_id, body)

    def made(self, key: int, version: int) -> bytes:
        values: dict[str, Any] = {}
        if key == METADATA:
            nodes = [
                {"node_id": number, "host": "127.0.0.1", "port": port}
                for number, port in enumerate(self.ports, ATTACKED)
            ]
            values = {"brokers": nodes, "controller_id": 1}
        if key == API_VERSIONS:
            values = {
                "api_keys": [
                    {"api_key": api.key, "min_version": api.versions.first, "max_version": api.versions.last}
                    for api in API
                    if api.versions.last >= 0
                ]
            }
        return encode(values, key, version, "response")


def _serve(listener: socket.socket, ports: tuple[int, ...]) -> None:
    async def forever() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Connection(ports), sock=listener, backlog=BACKLOG)
        await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(forever())


@contextlib.contextmanager
def running() -> Iterator[tuple[int, int]]:
    """The ports of both: of the attacked one, which is for bootstrap too, and of the other."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    attacked, other = (listener.getsockname()[1] for listener in listeners)
    ports = attacked, other
    fork = multiprocessing.get_context("fork")
    processes = [fork.Process(target=_serve, args=(each, ports), daemon=True) for each in listeners]
    for process, listener in zip(processes, listeners, strict=True):
        process.start()
        listener.close()
    try:
        yield ports
    finally:
        for process in processes:
            process.terminate()
            process.join()
