"""The first step of every connection that klamm accepts itself: the address of its client, which a load
balancer may tell in a PROXY header.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address

from klamm.proxy.edge import sockets
from klamm.proxy.edge.accepting.proxy_header import BadHeader, NoHeader, read_header
from klamm.proxy.edge.sockets import Arrival

HEADER_S = 10.0  # from the connection to the end of a PROXY header
PIECE = 512  # bytes of a PROXY header that are looked at in one go
SEND_IT = "let it send one (HAProxy: send-proxy-v2), or take its address out of proxy_protocol.from"
Network = IPv4Network | IPv6Network
Refused = Callable[[tuple[str, int], str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptor:
    """`refused` gets the address of a client that goes no further, the kind of problem, and why. Connections
    from the networks `balancers` begin with a PROXY header.
    """

    refused: Refused
    balancers: Sequence[Network] = ()

    async def enter(self, sock: socket.socket, peer: tuple[str, int], number: int = 0) -> None:
        """Give the socket a protocol, or close it. `number`: of the connection, if it has one already."""
        try:
            arrival = await self.arrival(sock, peer)
            if arrival is None:
                sock.close()
            else:
                await self.admit(sock, arrival._replace(number=number))
        except asyncio.CancelledError:
            sock.close()
            raise
        except OSError:  # the client has gone
            sock.close()

    def takes(self, again: Callable[[], None]) -> bool:
        """Always: the Listener bounds the connections on their way in."""
        return True

    async def admit(self, sock: socket.socket, arrival: Arrival) -> None:
        """The next step. Raises OSError where the client has gone."""
        raise NotImplementedError

    async def arrival(self, sock: socket.socket, peer: tuple[str, int]) -> Arrival | None:
        """The addresses of a connection; None if it goes no further."""
        client = await self._client(sock, peer) if self._is_balancer(peer[0]) else peer
        return None if client is None else Arrival(client, sockets.address(sock.getsockname()))

    def _is_balancer(self, host: str) -> bool:
        if not self.balancers:
            return False
        address = ip_address(host)
        return any(address in network for network in self.balancers)

    async def _client(self, sock: socket.socket, peer: tuple[str, int]) -> tuple[str, int] | None:
        """Take the PROXY header from a balancer's connection: the address of its client, or the balancer's
        own. None if it has none that can be used.
        """
        data = b""
        try:
            async with asyncio.timeout(HEADER_S):
                while True:
                    ahead = await receive(sock, PIECE, socket.MSG_PEEK)
                    if not ahead:
                        if data:
                            raise BadHeader("the connection ended within it")
                        return None  # a health check
                    header = read_header(data + ahead)
                    taken = len(ahead) if header is None else header.size - len(data)
                    data += sock.recv(taken)
                    if header is not None:
                        return header.client or peer
        except NoHeader:
            why = f"{peer[0]} is in proxy_protocol.from, but sends no PROXY header: {SEND_IT}"
        except BadHeader as error:
            why = f"the PROXY header of {peer[0]} cannot be used: {error}"
        except TimeoutError:
            sent = "began a PROXY header and did not end it" if data else "sent no PROXY header"
            why = f"{peer[0]} is in proxy_protocol.from, but {sent} within {HEADER_S:g} s: {SEND_IT}"
        self.refused(peer, "bad_proxy_header", why)
        return None


async def receive(sock: socket.socket, most: int, how: int = 0) -> bytes:
    """The bytes of a client that have come; none if it has ended. Waits for the first one. With MSG_PEEK they
    stay unread. Raises OSError.
    """
    loop = asyncio.get_running_loop()
    while True:
        with contextlib.suppress(BlockingIOError, InterruptedError):
            return sock.recv(most, how)
        there: asyncio.Future[None] = loop.create_future()
        loop.add_reader(sock, _set, there)
        try:
            await there
        finally:
            loop.remove_reader(sock)


def _set(there: asyncio.Future[None]) -> None:
    if not there.done():
        there.set_result(None)
