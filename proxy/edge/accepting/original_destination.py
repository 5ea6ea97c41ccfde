"""The address that a client connected to, before a rule of the kernel's firewall redirected it to klamm."""

from __future__ import annotations

import socket
from struct import Struct

from klamm.proxy.edge import sockets

SO_ORIGINAL_DST = 80  # linux/netfilter_ipv4.h; IP6T_SO_ORIGINAL_DST is the same number at the other level
IPV4 = Struct("!2xH4s8x")  # struct sockaddr_in: port, address
IPV6 = Struct("!2xH4x16s4x")  # struct sockaddr_in6


class BadDestination(ValueError):
    """klamm leads no connection to this destination; the text says what to change."""


def original_destination(sock: socket.socket) -> tuple[str, int]:
    """Of a connection that was accepted; its own local address if nothing redirected it. Raises OSError if
    the kernel does not track connections.
    """
    if sock.family == socket.AF_INET6 and "." not in sock.getsockname()[0]:
        found = sock.getsockopt(socket.IPPROTO_IPV6, SO_ORIGINAL_DST, IPV6.size)
        port, host = IPV6.unpack(found)
        return sockets.address((socket.inet_ntop(socket.AF_INET6, host), port))
    port, host = IPV4.unpack(sock.getsockopt(socket.IPPROTO_IP, SO_ORIGINAL_DST, IPV4.size))
    return socket.inet_ntop(socket.AF_INET, host), port
