"""Hand-made requests: one connection, any API in any version, whole frames kept for comparison."""

import socket
import struct
from typing import Any

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import read_response_header, request_frame, response_header_version
from tests.brokers.wire import receive_exactly


class Conversation:
    """A connection to a broker, or to klamm in front of it. A context manager."""

    def __init__(self, address: tuple[str, int], timeout_s: float = 30.0) -> None:
        self.socket = socket.create_connection(address, timeout=timeout_s)
        self.correlation_id = 0

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask_bytes(self, api: str, version: int, values: dict[str, Any]) -> bytes:
        """The body of the response."""
        self.correlation_id += 1
        body = encode(values, api, version, "request")
        self.socket.sendall(request_frame(API[api], version, self.correlation_id, "by-hand", body))
        (size,) = struct.unpack(">i", receive_exactly(self.socket, 4))
        frame = receive_exactly(self.socket, size)
        header = read_response_header(frame, response_header_version(API[api], version))
        assert header.correlation_id == self.correlation_id
        return frame[header.size :]

    def ask(self, api: str, version: int, values: dict[str, Any]) -> dict[str, Any]:
        """The values of the response."""
        return decode(self.ask_bytes(api, version, values), api, version, "response")


def ask(address: tuple[str, int], api: str, version: int, values: dict[str, Any]) -> dict[str, Any]:
    """One question on a connection of its own."""
    with Conversation(address) as conversation:
        return conversation.ask(api, version, values)


def coordinator(address: tuple[str, int], key_type: int, key: str) -> tuple[str, int] | None:
    """The coordinator of a group (type 0), transaction (1), share partition (2); None until there is one."""
    answer = ask(address, "FindCoordinator", 6, {"key_type": key_type, "coordinator_keys": [key]})
    (found,) = answer["coordinators"]
    return None if found["error_code"] else (found["host"], found["port"])
