"""TCP servers of tests, and the frames that they read."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.brokers.wire import receive_exactly


class Server(socketserver.ThreadingTCPServer):
    """At a free port; a connection that ends in the middle of its handler is nothing to tell."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 100

    def __init__(self, connection: type[socketserver.BaseRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), connection)

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        pass


@contextmanager
def serving(server: Server) -> Iterator[None]:
    """It serves, and is closed at the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def receive_frame(sock: socket.socket) -> bytes:
    """The next frame, without its size; EOFError where there is none."""
    return receive_exactly(sock, int.from_bytes(receive_exactly(sock, 4), "big"))
