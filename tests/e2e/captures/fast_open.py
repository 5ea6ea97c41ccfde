"""A client with TCP Fast Open, and a server that answers it: run as `python -m`, in a namespace each."""

from __future__ import annotations

import socket
import sys

from tests.captures.dialogue import request, response

PORT, QUEUE, CONNECTIONS = 9092, 16, 3
ASKED = request(0), request(1, "Metadata", 1), request(2, "Metadata", 1)
ANSWERED = response(0), response(1, "Metadata", 1), response(2, "Metadata", 1)


def serve(host: str) -> None:
    with socket.create_server((host, PORT)) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, QUEUE)
        print("serving", flush=True)
        while True:
            connection, _ = server.accept()
            with connection:
                for answer in ANSWERED:
                    connection.recv(1 << 16)
                    connection.sendall(answer)
                connection.recv(1)


def ask(host: str) -> None:
    """The first connection gets the cookie with which the others send data at once."""
    for _ in range(CONNECTIONS):
        with socket.socket() as client:
            client.sendto(ASKED[0], socket.MSG_FASTOPEN, (host, PORT))
            client.recv(1 << 16)
            for asked in ASKED[1:]:
                client.sendall(asked)
                client.recv(1 << 16)


if __name__ == "__main__":
    {"serve": serve, "ask": ask}[sys.argv[1]](sys.argv[2])
