"""The little of the wire that readiness needs, by hand, so that the harness rests on no product code."""

import socket
import struct
from typing import NamedTuple


class Node(NamedTuple):
    """A broker as Metadata tells it."""

    node_id: int
    host: str
    port: int


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """`size` bytes from `connection`; EOFError if it ends before."""
    data = bytearray()
    while len(data) < size:
        chunk = connection.recv(min(size - len(data), 1 << 20))
        if not chunk:
            raise EOFError(f"connection closed after {len(data)} of {size} bytes")
        data += chunk
    return bytes(data)


def call(address: tuple[str, int], frame: bytes, timeout_s: float = 10.0) -> bytes:
    """Send one request (header, body) on a connection of its own; the response. Both without their sizes."""
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", receive_exactly(connection, 4))
        return receive_exactly(connection, size)


def metadata(address: tuple[str, int], topic: str | None = None) -> dict[int, Node]:
    """The brokers that Metadata v0 names (0.8 and 4.3 both speak it), asked for one topic or for all."""
    client_id = b"ready"
    topics = struct.pack(">ih", 1, len(topic)) + topic.encode() if topic else struct.pack(">i", 0)
    answer = call(address, struct.pack(">hhih", 3, 0, 7, len(client_id)) + client_id + topics)
    (count,) = struct.unpack_from(">i", answer, 4)
    offset, nodes = 8, {}
    for _ in range(count):
        node_id, length = struct.unpack_from(">ih", answer, offset)
        host = answer[offset + 6 : offset + 6 + length].decode()
        (port,) = struct.unpack_from(">i", answer, offset + 6 + length)
        offset += 10 + length
        nodes[node_id] = Node(node_id, host, port)
    return nodes


def answers(address: tuple[str, int], question: bytes, expected: bytes) -> bool:
    """Whether the server at `address` answers a bare `question` with text that starts with `expected`."""
    with socket.create_connection(address, timeout=5) as connection:
        connection.sendall(question)
        return receive_exactly(connection, len(expected)) == expected
