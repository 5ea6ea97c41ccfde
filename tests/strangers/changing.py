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
from typing import Any, NamedTuple

from klamm.decoders import API, decode
from klamm.decoders.headers import (
    RESPONSE,
    read_request_header,
    request_header_version,
    response_frame,
    response_header_version,
)
from klamm.proxy.session.rewriting.addresses import rewrite
from klamm.proxy.session.rewriting.topology import Kind
from klamm.rules.plan import endpoints
from tests.brokers.wire import receive_exactly

Address = tuple[str, int]


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
            server = stack.enter_context(_Server(address, body_for, to_acks_0))
            ports[node_id] = server.server_address[1]
            thread = threading.Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
        yield f"127.0.0.1:{min(ports.values())}"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 100

    def __init__(self, broker: Address, change: Change, to_acks_0: Unasked | None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.broker, self.change, self.to_acks_0 = broker, change, to_acks_0

    def handle_error(self, request: object, client_address: object) -> None:
        """Either side has gone: nothing to tell."""


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
                    frame = _frame(self.request)
                    key, version = int.from_bytes(frame[4:6], "big"), int.from_bytes(frame[6:8], "big")
                    one = Asked(API[key].name, version)
                    values = _values(frame, one) if one.api == "Produce" else {}
                    if values.get("acks") != 0:
                        asked.put(one)
                    broker.sendall(frame)
                    if values.get("acks") == 0 and self.server.to_acks_0 is not None:
                        body = self.server.to_acks_0(one, values)
                        _, correlation_id = RESPONSE.unpack_from(frame, 4)
                        self.send(response_frame(API[key], version, correlation_id, body))
            broker.shutdown(socket.SHUT_RDWR)
            answers.join()

    def answers(self, broker: socket.socket, asked: SimpleQueue[Asked]) -> None:
        with suppress(OSError, EOFError):
            while True:
                frame = _frame(broker)
                one = asked.get()
                api = API[one.api]
                start = 8 + response_header_version(api, one.version)  # Kafka's has no tagged fields
                body = self.server.change(one, frame[start:])
                _, correlation_id = RESPONSE.unpack_from(frame)
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
    header = read_request_header(frame[4:], request_header_version(API[asked.api], asked.version))
    return decode(frame[4 + header.size :], asked.api, asked.version, "request")


def _frame(sock: socket.socket) -> bytes:
    head = receive_exactly(sock, 4)
    return head + receive_exactly(sock, int.from_bytes(head, "big"))
