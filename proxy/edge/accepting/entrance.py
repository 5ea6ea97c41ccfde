"""The way in of a connection, between its accept and its first request: the original destination of a
connection that was redirected, TLS, and SASL with klamm.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from klamm.decoders.framing import NOT_KAFKA
from klamm.proxy.edge.accepting.acceptor import Acceptor, receive
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.login import Gate
from klamm.proxy.edge.accepting.original_destination import BadDestination
from klamm.proxy.edge.accepting.server_tls import KAFKA_CLIENTS, Advice, why_handshake_failed
from klamm.proxy.edge.accepting.tls_alerts import ENTERING, Entering
from klamm.proxy.edge.sockets import Arrival

FIRST_S = 10.0  # for the first byte of a redirected connection; without one it speaks no TLS
HANDSHAKE_S = 10.0  # from there to the end of a handshake
SHUTDOWN_S = 5.0  # for the client to say its end of TLS
MOST_READ = 1 << 16  # of a request in plain text, before it is refused
RECORD = b"\x16"  # the first byte of a handshake
NotTls = tuple[str, bytes]  # why it is refused, or nothing to say; and an answer in plain text
Lead = Callable[[socket.socket, Arrival], Awaitable[Arrival]]


def not_tls(first: bytes) -> NotTls:
    """For a client of Kafka whose first bytes are no TLS."""
    other = NOT_KAFKA.get(first[:4])
    if other:
        return f"the client speaks neither TLS nor Kafka but {other}", b""
    advice = "set security.protocol to SSL or SASL_SSL"
    return (f"the client speaks no TLS to a TLS port: {advice}" if first else ""), b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance(Acceptor):
    """`make` gives the protocol of a client that has come in. `tls` None: the clients speak plain text;
    `advice` and `plain` explain handshakes that fail. `lead` finds the original destinations of connections
    that are redirected to klamm, or raises BadDestination; None: clients connect to klamm.
    """

    make: Callable[[Arrival], asyncio.Protocol]
    tls: FollowedTls | None = None
    lead: Lead | None = None
    advice: Advice = KAFKA_CLIENTS
    plain: Callable[[bytes], NotTls] = not_tls

    async def admit(self, sock: socket.socket, arrival: Arrival, ahead: bytes = b"") -> None:
        """Let a client in by TLS and SASL, if they are wanted; `ahead` are its first bytes if they have been
        read. Raises OSError.
        """
        tls = self.tls
        begun = self._begin(sock, arrival) if tls is None else self._shake_hands(sock, arrival, tls, ahead)
        protocol = await begun
        if isinstance(protocol, Gate):
            await protocol.authenticate()

    async def arrival(self, sock: socket.socket, peer: tuple[str, int]) -> Arrival | None:
        """The addresses of a connection, to where it was going; None if it goes no further."""
        arrival = await Acceptor.arrival(self, sock, peer)
        if arrival is None or self.lead is None:
            return arrival
        return await self._led(sock, arrival, self.lead)

    async def _led(self, sock: socket.socket, arrival: Arrival, lead: Lead) -> Arrival | None:
        """The same with the original destination. Clients speak first, and their first byte tells TLS."""
        first: bytes | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_S):
                first = await receive(sock, 1, socket.MSG_PEEK)
        if first == b"":
            return None  # a health check
        try:
            led = await lead(sock, arrival)
        except BadDestination as error:
            self.refused(arrival.client, "bad_destination", str(error))
            return None
        return led._replace(opaque=self.tls is None and first == RECORD)

    async def _begin(self, sock: socket.socket, arrival: Arrival, **tls: Any) -> asyncio.Protocol:
        entering = _Entering(partial(self.make, arrival))
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: entering, sock, **tls)
        except asyncio.CancelledError:
            if not tls:  # uvloop closes it without a word to its protocol
                entering.given_up()
            raise
        return entering.protocol

    async def _shake_hands(
        self, sock: socket.socket, arrival: Arrival, tls: FollowedTls, ahead: bytes
    ) -> asyncio.Protocol | None:
        """None for a client that has been refused."""
        first = ahead
        try:
            async with asyncio.timeout(HANDSHAKE_S):
                first = ahead or await receive(sock, 4, socket.MSG_PEEK)
                if first[:1] != RECORD:
                    if why := end_plain(sock, first, self.plain):
                        self.refused(arrival.client, "plain_from_client", why)
                    return None
                await tls.turn()
                ENTERING.set(Entering(sock, ahead))
                return await self._begin(
                    sock,
                    arrival,
                    ssl=tls.context,
                    ssl_handshake_timeout=HANDSHAKE_S,
                    ssl_shutdown_timeout=SHUTDOWN_S,
                )
        except OSError as error:  # ssl.SSLError and TimeoutError are too
            sock.close()
            if first:  # else it was a health check, or a client that waits for a first word
                least = tls.context.minimum_version.name.replace("_", ".")
                self.refused(
                    arrival.client, "client_tls_failed", why_handshake_failed(error, least, self.advice)
                )
            return None


class _Entering(asyncio.Protocol):
    """Stands for a client until its connection is made: nothing is made for one whose handshake fails."""

    def __init__(self, make: Callable[[], asyncio.Protocol]) -> None:
        self.make = make
        self.protocol: asyncio.Protocol

    def given_up(self) -> None:
        """The connection is gone. If it was made already, the client's protocol has to know."""
        if hasattr(self, "protocol"):
            self.protocol.connection_lost(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.protocol = self.make()
        transport.set_protocol(self.protocol)
        self.protocol.connection_made(transport)


def end_plain(sock: socket.socket, first: bytes, plain: Callable[[bytes], NotTls] = not_tls) -> str:
    """Close the connection of a client whose first bytes are no TLS. Gives the reason, or nothing to say."""
    why, answer = plain(first)
    with contextlib.suppress(OSError):
        if answer:
            sock.recv(MOST_READ)  # bytes that are left unread would turn the end into a reset
            sock.send(answer)
    sock.close()
    return why
