"""A server that answers a client with the bytes that a test says, and klamm itself as a broker does."""

from __future__ import annotations

import socket
import socketserver
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from klamm.decoders import API, encode
from klamm.decoders.headers import response_frame
from tests.strangers.serving import Server, receive_frame, serving

LOOK_S = 0.0002
SOCK_DIAG, BY_FAMILY, REQUEST, ALL_STATES = 4, 20, 1, 0xFFFFFFFF
ANY_INTERFACE = struct.pack("III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # and any cookie
OWN = b"klamm"  # its client id
METADATA, API_VERSIONS = 3, 18


class Batch(NamedTuple):
    """After so many more requests these pieces are sent, each when the one before has been read."""

    requests: int
    pieces: list[bytes]


Scripts = dict[bytes, list[Batch]]  # by client id


@contextmanager
def scripted(scripts: Scripts) -> Iterator[tuple[str, int]]:
    """The address of the server. It is node 0 of its cluster, and the only one that it tells klamm of."""
    server = _Server(scripts)
    with serving(server):
        yield server.address


class _Server(Server):
    def __init__(self, scripts: Scripts) -> None:
        super().__init__(_Connection)
        self.scripts = scripts


class _Connection(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(EOFError, OSError):
            frame = receive_frame(self.request)
            while _client_id(frame) == OWN:
                self.request.sendall(_own_answer(frame, self.server.address))
                frame = receive_frame(self.request)
            due = 1
            for requests, pieces in self.server.scripts[_client_id(frame)]:
                for _ in range(requests - due):
                    receive_frame(self.request)
                due = 0
                for piece in pieces:
                    self.request.sendall(piece)
                    if piece is not pieces[-1]:
                        self.wait_until_read()
            receive_frame(self.request)

    def wait_until_read(self) -> None:
        """Wait until nothing that was sent is left in the system."""
        while unread(self.request):
            time.sleep(LOOK_S)


def unread(sent: socket.socket) -> int:
    """The bytes that the other end of a connection, on this machine, has not read yet; 0 where it has gone:
    see sock_diag(7).
    """
    (host, port), (there, at) = sent.getsockname(), sent.getpeername()
    ends = struct.pack(">HH4s12x4s12x", at, port, socket.inet_aton(there), socket.inet_aton(host))
    wanted = struct.pack("BBxxI", socket.AF_INET, socket.IPPROTO_TCP, ALL_STATES) + ends + ANY_INTERFACE
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, SOCK_DIAG) as system:
        system.send(struct.pack("IHHII", 16 + len(wanted), BY_FAMILY, REQUEST, 0, 0) + wanted)
        told = system.recv(4096)
    kind, (waiting,) = int.from_bytes(told[4:6], sys.byteorder), struct.unpack_from("I", told.ljust(76), 72)
    return int(waiting) if kind == BY_FAMILY else 0


def _client_id(frame: bytes) -> bytes:
    return frame[10 : 10 + int.from_bytes(frame[8:10], "big")]


def _own_answer(frame: bytes, address: tuple[str, int]) -> bytes:
    """To ApiVersions and Metadata, which are all that it offers."""
    key, version, correlation_id = struct.unpack_from(">hhi", frame)
    offered = [{"api_key": each, "min_version": 0, "max_version": 3} for each in (METADATA, API_VERSIONS)]
    host, port = address
    values: dict[int, dict[str, Any]] = {
        API_VERSIONS: {"api_keys": offered},
        METADATA: {"brokers": [{"node_id": 0, "host": host, "port": port}]},
    }
    body = encode(values[key], key, version, "response")
    return response_frame(API[key], version, correlation_id, body)
