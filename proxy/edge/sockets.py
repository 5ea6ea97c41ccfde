"""Functions that asyncio lacks: a reset, the number of unsent bytes. And TLS settings from files."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from fcntl import ioctl
from struct import Struct
from termios import TIOCOUTQ
from typing import Any, NamedTuple

from klamm.captures.captured import RESET_BY_BROKER, RESET_BY_CLIENT
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.settings.pem_files import authorities_of, load_identity

KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6}  # s, s, times; Linux: 2 h, 75 s, 9
RESET = Struct("ii").pack(1, 0)  # SO_LINGER of 0 s: closing sends RST
UNSENT = Struct("i")
GIVEN_UP = {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH}  # the latter where a router says so
CLIENT_VANISHED, BROKER_VANISHED = "client vanished", "broker vanished"


def reset(transport: asyncio.Transport) -> None:
    """End it with RST; what is not sent yet is lost."""
    sock = transport.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError):  # it may be closed, or None, by now
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    transport.abort()


def unsent(transport: asyncio.Transport) -> int:
    """Bytes that the peer has not taken yet: in the transport and in the kernel."""
    waiting = transport.get_write_buffer_size()
    sock = transport.get_extra_info("socket")
    with contextlib.suppress(OSError, AttributeError, ValueError):  # it may be closed, or None, by now
        waiting += UNSENT.unpack(ioctl(sock.fileno(), TIOCOUTQ, bytes(UNSENT.size)))[0]
    return waiting


def keep_alive(transport: asyncio.Transport) -> None:
    """Let the kernel notice a peer that has vanished, within two minutes on an idle connection."""
    sock = transport.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in KEEP_ALIVE.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def address(name: Any) -> tuple[str, int]:
    """(host, port) of a socket name; an IPv4 client of a dual-stack listener in its IPv4 form."""
    host = str(name[0]).split("%")[0]
    return host.removeprefix("::ffff:") if "." in host else host, int(name[1])


def why_lost(error: Exception, client: bool) -> str:
    """The reason of a connection that an error has ended. The kernel gives up a peer that has vanished."""
    if isinstance(error, OSError) and error.errno in GIVEN_UP:
        return CLIENT_VANISHED if client else BROKER_VANISHED
    return RESET_BY_CLIENT if client else RESET_BY_BROKER


class Arrival(NamedTuple):
    """The address of a client, and the one that it connected to. `opaque`: klamm cannot read its bytes.
    `named`: the node whose host name it asked for, where all nodes share a port. `number`: of the connection,
    where another process has given it one.
    """

    client: tuple[str, int]
    local: tuple[str, int]
    opaque: bool = False
    named: NodeKey | None = None
    number: int = 0


def arrival(transport: asyncio.Transport) -> Arrival:
    """As the kernel has it."""
    client, local = (address(transport.get_extra_info(name)) for name in ("peername", "sockname"))
    return Arrival(client, local)


def tls_context(ca: str | None, cert: str | None, key: str | None, verify: bool) -> ssl.SSLContext:
    """Raises OSError on files that cannot be used."""
    with authorities_of(ca):
        context = ssl.create_default_context(cafile=ca)
    if cert is not None:
        load_identity(context, cert, key)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def why_tls_ended(error: ssl.SSLError) -> str:
    """One line, with what may help."""
    message = f"the broker ended TLS ({error.reason or error})"
    if "CERTIFICATE" in (error.reason or ""):
        message += ": it may want a certificate of klamm's own, clusters[].tls.cert in klamm.yaml"
    return message
