"""The way in at a port whose clients tell by a server name (SNI) which cluster and node they want."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass

from klamm.proxy.edge.accepting.acceptor import Acceptor, receive
from klamm.proxy.edge.accepting.client_hello import BadHello, Hello, HelloReader
from klamm.proxy.edge.accepting.entrance import HANDSHAKE_S, MOST_READ, RECORD, Entrance, end_plain
from klamm.proxy.edge.accepting.server_tls import why_handshake_failed
from klamm.proxy.edge.accepting.tls_alerts import DECODE_ERROR, fatal
from klamm.proxy.edge.sockets import Arrival

PIECE = 1 << 12  # bytes of a ClientHello that are read in one go
ENDED = "the client ended the connection within its ClientHello"


class NotServed(Exception):
    """A client goes no further. `kind` of problem; `alert`: the number that it is told; None: it is told
    nothing, and comes again.
    """

    def __init__(self, kind: str, why: str, alert: int | None) -> None:
        super().__init__(why)
        self.kind, self.alert = kind, alert


Choose = Callable[[Hello, Arrival], tuple[Entrance, Arrival]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEntrance(Acceptor):
    """`choose` gives the entrance for a server name, and the arrival with the node that it names; or raises
    NotServed.
    """

    choose: Choose

    async def admit(self, sock: socket.socket, arrival: Arrival) -> None:
        """Read the server name, and let the client in by its entrance. Raises OSError."""
        try:
            ahead, hello = await _read_hello(sock)
            if hello is None:
                if why := end_plain(sock, ahead[:4]):
                    self.refused(arrival.client, "plain_from_client", why)
                return
            entrance, named = self.choose(hello, arrival)
        except NotServed as refusal:
            _end(sock, refusal.alert)
            self.refused(arrival.client, refusal.kind, str(refusal))
            return
        await entrance.admit(sock, named, ahead)


async def _read_hello(sock: socket.socket) -> tuple[bytes, Hello | None]:
    """All bytes that were read, and the ClientHello in them; None where they are no TLS, or none. Raises
    NotServed, OSError.
    """
    ahead, reader = bytearray(), HelloReader()
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            while reader.hello is None:
                piece = await receive(sock, PIECE)
                ahead += piece
                if ahead[:1] != RECORD:
                    return bytes(ahead), None
                if not piece:
                    raise NotServed("client_tls_failed", ENDED, None)
                reader.feed(piece)
    except TimeoutError as error:
        if not ahead:
            return b"", None
        raise NotServed("client_tls_failed", why_handshake_failed(error, ""), None) from error
    except BadHello as error:
        why = f"the client's TLS handshake cannot be read: {error}"
        raise NotServed("client_tls_failed", why, DECODE_ERROR) from error
    return bytes(ahead), reader.hello


def _end(sock: socket.socket, alert: int | None) -> None:
    with contextlib.suppress(OSError):  # the client has gone
        if alert is not None:
            sock.send(fatal(alert))
            sock.recv(MOST_READ)  # bytes that are left unread would turn the end into a reset
    sock.close()
