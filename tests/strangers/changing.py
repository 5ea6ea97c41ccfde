"""A proxy in front of each broker that changes answers: with a real Kafka behind it, a server that is not
quite Kafka.
"""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from struct import Struct
from typing import Any, NamedTuple

from klamm.decoders import API, decode
from klamm.decoders.headers import (
    read_request_header,
    request_header_version,
    response_frame,
    response_header_version,
)
from klamm.proxy.session.rewriting.addresses import rewrite
from klamm.proxy.session.rewriting.topology import Kind
from klamm.rules.plan import endpoints
from tests.strangers.serving import Server, receive_frame, serving

Address = tuple[str, int]
INT32 = Struct(">i")
HEAD = Struct(">hhi")  # key, version, correlation id


class Asked(NamedTuple):
    """The request of an answer."""

    api: str
    version: int


class Late(NamedTuple):
    """The body of an answer that comes later, behind others."""

    body: bytes
    seconds: float = 0.25


Body = bytes | Late | None  # None: no answer
Change = Callable[[Asked, bytes], Body]  # the body of an answer as Kafka gave it, and as clients get it
# The body of an answer to a request that Kafka does not answer, from the values of the request.
Unasked = Callable[[Asked, dict[str, Any]], bytes]


@contextmanager
def changing(
    brokers: Mapping[int, Address], change: Change, to_acks_0: Unasked | None = None
) -> Iterator[str]:
    """The address of one of the proxies, as bootstrap.servers takes it. Answers name them instead of the
    brokers. Without `to_acks_0`, Produce requests with acks=0 have no answer.
    """
    ports: dict[int, int] = {}

    def standing(kind: Kind, node_id: int, host: str, port: int) -> Address:
        return ("127.0.0.1", ports[node_id]) if kind == "broker" else (host, port)

    def body_for(asked: Asked, body: bytes) -> Body:
        where = endpoints(API[asked.api], asked.version)
        new = None if where is None else rewrite(where, body, 0, len(body), standing)
        return change(asked, body if new is None else b"".join(new))

    with ExitStack() as stack:
        for node_id, address in brokers.items():
            server = _Server(address, body_for, to_acks_0)
            _, ports[node_id] = server.address
            stack.enter_context(serving(server))
        yield f"127.0.0.1:{min(ports.values())}"


class _Server(Server):
    def __init__(self, broker: Address, change: Change, to_acks_0: Unasked | None) -> None:
        super().__init__(_Connection)
        self.broker, self.change, self.to_acks_0 = broker, change, to_acks_0


class _Connection(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        asked: SimpleQueue[Asked] = SimpleQueue()
        self.sending = threading.Lock()
        with socket.create_connection(self.server.broker) as broker:
            answers = threading.Thread(target=self.answers, args=(broker, asked), daemon=True)
            answers.start()
            with suppress(OSError, EOFError):
                while True:
                    frame = receive_frame(self.request)
                    key, version, correlation_id = HEAD.unpack_from(frame)
                    one = Asked(API[key].name, version)
                    values = _values(frame, one) if one.api == "Produce" else {}
                    if values.get("acks") != 0:
                        asked.put(one)
                    broker.sendall(INT32.pack(len(frame)) + frame)
                    if values.get("acks") == 0 and self.server.to_acks_0 is not None:
                        body = self.server.to_acks_0(one, values)
                        self.send(response_frame(API[key], version, correlation_id, body))
            broker.shutdown(socket.SHUT_RDWR)
            answers.join()

    def answers(self, broker: socket.socket, asked: SimpleQueue[Asked]) -> None:
        with suppress(OSError, EOFError):
            while True:
                frame = receive_frame(broker)
                one = asked.get()
                api = API[one.api]
                start = 4 + response_header_version(api, one.version)  # Kafka's has no tagged fields
                body = self.server.change(one, frame[start:])
                (correlation_id,) = INT32.unpack_from(frame)
                answer = partial(response_frame, api, one.version, correlation_id)
                if isinstance(body, Late):
                    threading.Timer(body.seconds, self.send, (answer(body.body),)).start()
                elif body is not None:
                    self.send(answer(body))
        with suppress(OSError):
            self.request.shutdown(socket.SHUT_RDWR)

    def send(self, frame: bytes) -> None:
        with suppress(OSError), self.sending:
            self.request.sendall(frame)


def _values(frame: bytes, asked: Asked) -> dict[str, Any]:
    """Of a request."""
    header = read_request_header(frame, request_header_version(API[asked.api], asked.version))
    return decode(frame[header.size :], asked.api, asked.version, "request")
