"""Sends the alert of a handshake that failed. uvloop closes such a connection, and never sends the alert that
OpenSSL has made: clients would take a refused certificate for a lost connection, and try for ever.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Entering:
    """The socket of a handshake, and its first bytes if they have been read from it already."""

    sock: socket.socket
    ahead: bytes = b""


ENTERING: ContextVar[Entering | None] = ContextVar("ENTERING", default=None)
"""The handshake that this task begins."""
DECODE_ERROR, MISSING_EXTENSION, UNRECOGNIZED_NAME = 50, 109, 112  # RFC 8446 section 6, RFC 6066 section 3
WAITS = (ssl.SSLWantReadError, ssl.SSLWantWriteError)  # no failures: bytes are missing


class _Handshake(ssl.SSLObject):
    """`outgoing` has the bytes for the client, which go to `sock`."""

    outgoing: ssl.MemoryBIO
    sock: socket.socket | None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except WAITS:
            raise
        except ssl.SSLError:
            if self.sock is not None:
                with contextlib.suppress(OSError):  # the client has gone, or reads nothing
                    self.sock.send(self.outgoing.read())
            raise
        self.sock = None


def fatal(alert: int) -> bytes:
    """The record of an alert that ends a handshake before it has begun."""
    return bytes((21, 3, 3, 0, 2, 2, alert))


class TellingContext(ssl.SSLContext):
    """Handshakes that fail send their alert to the socket in ENTERING; they begin with the bytes there."""

    sslobject_class = _Handshake

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *options: Any, **more: Any
    ) -> ssl.SSLObject:
        made = super().wrap_bio(incoming, outgoing, *options, **more)
        assert isinstance(made, _Handshake)
        made.outgoing, made.sock, entering = outgoing, None, ENTERING.get()
        if entering is not None:
            made.sock = entering.sock
            incoming.write(entering.ahead)
            entering.ahead = b""  # the context lives as long as the connection
        return made
