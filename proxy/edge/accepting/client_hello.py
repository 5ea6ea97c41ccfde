"""Reads the server name (SNI) out of a TLS ClientHello, before the handshake begins. Pure.

RFC 8446 section 4.1.2 and 5.1, RFC 5246 section 7.4.1.2, RFC 6066 section 3.
"""

from __future__ import annotations

from typing import NamedTuple

HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME, HOST_NAME = 0, 0
RECORD_HEADER, MESSAGE_HEADER = 5, 4  # bytes
LARGEST_RECORD = 1 << 14  # of plain text
LARGEST_HELLO = 1 << 14  # with a key share after the quantum and a ticket it has some 2 KiB
LONGEST_NAME = 255
FIXED = 2 + 32  # the version and the random bytes


class BadHello(ValueError):
    """Bytes that are no ClientHello; the text says why."""


class Hello(NamedTuple):
    """`server_name` is in lower case, without a dot at its end; None: the client sends none."""

    server_name: str | None


class HelloReader:
    """Takes the bytes of a connection as they come. `hello` is there once they are enough."""

    def __init__(self) -> None:
        self.hello: Hello | None = None
        self.rest = bytearray()  # of a record that is not whole
        self.message = bytearray()  # the fragments of whole records

    def feed(self, data: bytes) -> None:
        """The next bytes. Raises BadHello."""
        self.rest += data
        pos = 0
        while self.hello is None and len(self.rest) - pos >= RECORD_HEADER:
            size = _record_size(self.rest, pos)
            if len(self.rest) - pos < RECORD_HEADER + size:
                break
            pos += RECORD_HEADER
            self.message += self.rest[pos : pos + size]
            pos += size
            self._look()
        del self.rest[:pos]

    def _look(self) -> None:
        message = self.message
        if message[0] != CLIENT_HELLO:
            raise BadHello(f"its first message is of type {message[0]}, and no ClientHello")
        if len(message) < MESSAGE_HEADER:
            return
        size = int.from_bytes(message[1:MESSAGE_HEADER])
        if size > LARGEST_HELLO:
            raise BadHello(f"its ClientHello has {size} bytes, more than {LARGEST_HELLO}")
        if len(message) >= MESSAGE_HEADER + size:
            self.hello = _hello(bytes(message[MESSAGE_HEADER : MESSAGE_HEADER + size]))


def _record_size(data: bytearray, pos: int) -> int:
    kind, major, size = data[pos], data[pos + 1], int.from_bytes(data[pos + 3 : pos + RECORD_HEADER])
    if kind != HANDSHAKE or major != 3:
        raise BadHello("its first bytes are no handshake of TLS")
    if not 0 < size <= LARGEST_RECORD:
        raise BadHello(f"a record of its handshake has {size} bytes")
    return size


class _Bytes:
    """Bytes that are read from the front. Raises BadHello where they are too few."""

    def __init__(self, data: bytes) -> None:
        self.data, self.pos = data, 0

    def __bool__(self) -> bool:
        return self.pos < len(self.data)

    def take(self, size: int) -> bytes:
        end = self.pos + size
        if end > len(self.data):
            raise BadHello("its ClientHello ends too early")
        taken, self.pos = self.data[self.pos : end], end
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def vector(self, size: int) -> _Bytes:
        """Bytes with their length, of `size` bytes, before them."""
        return _Bytes(self.take(self.number(size)))


def _hello(body: bytes) -> Hello:
    rest = _Bytes(body)
    rest.take(FIXED)
    for size in (1, 2, 1):  # session id, cipher suites, compression methods
        rest.vector(size)
    extensions = rest.vector(2) if rest else _Bytes(b"")  # TLS 1.2 may leave them out
    while extensions:
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == SERVER_NAME:
            return Hello(_name(content))
    return Hello(None)


def _name(content: _Bytes) -> str | None:
    names = content.vector(2)
    while names:
        kind, name = names.number(1), names.vector(2).data
        if kind == HOST_NAME:
            if not 0 < len(name) <= LONGEST_NAME:
                raise BadHello(f"its server name has {len(name)} bytes")
            return name.decode("ascii", "backslashreplace").lower().removesuffix(".")
    return None
