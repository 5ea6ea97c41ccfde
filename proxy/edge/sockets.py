"""What asyncio does not do with sockets: a reset, and what has not been taken yet. And TLS from files."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from fcntl import ioctl
from struct import Struct
from termios import TIOCOUTQ
from typing import Any

KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}  # s, s, times; Linux: 2 h, 75 s, 9
RESET = Struct("ii").pack(1, 0)  # SO_LINGER of 0 s: closing sends RST
UNSENT = Struct("i")


def reset(transport: asyncio.Transport) -> None:
    """End it with RST; what is not sent yet is lost."""
    sock = transport.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError):  # it may be closed, or None, by now
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    transport.abort()


def unsent(transport: asyncio.Transport) -> int:
    """Bytes that the other end has not taken yet: here, or in the system."""
    waiting = transport.get_write_buffer_size()
    sock = transport.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError, ValueError):  # it may be closed, or None, by now
        waiting += UNSENT.unpack(ioctl(sock.fileno(), TIOCOUTQ, bytes(UNSENT.size)))[0]
    return waiting


def keep_alive(transport: asyncio.Transport) -> None:
    """A peer that has vanished is noticed by the system, in two minutes where nothing is under way to it."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def address(name: Any) -> tuple[str, int]:
    """(host, port) of a socket name; an IPv4 client of a dual-stack listener in its IPv4 form."""
    host = str(name[0]).split("%")[0]
    return host.removeprefix("::ffff:") if "." in host else host, int(name[1])


def tls_context(ca: str | None, cert: str | None, key: str | None, verify: bool) -> ssl.SSLContext:
    """Raises OSError or ssl.SSLError on files that cannot be used."""
    context = ssl.create_default_context(cafile=ca)
    if cert is not None:
        context.load_cert_chain(cert, key)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def why_tls_ended(error: ssl.SSLError) -> str:
    """One line, with what may help."""
    said = f"the broker ended TLS ({error.reason or error})"
    if "CERTIFICATE" in (error.reason or ""):
        said += ": it may want a certificate of klamm's own, clusters[].tls.cert in klamm.yaml"
    return said
