"""How long no byte has come or gone on a connection, and how many have. The kernel knows, so no byte costs
anything here.
"""

from __future__ import annotations

import asyncio
import socket
from struct import Struct
from struct import error as StructError
from typing import Any

TIMES = Struct("=I4xI")  # in Linux' tcp_info: ms since data was sent, and since data came
TIMES_AT = 44
BYTES = Struct("=QQ")  # bytes that the peer has acknowledged, and bytes that came from it
BYTES_AT = 120


def idle_s(transport: asyncio.BaseTransport | None) -> float:
    """Seconds since the last byte, of either way; 0 where nobody knows."""
    times = _told(transport, TIMES, TIMES_AT)
    return 0.0 if times is None else float(min(times)) / 1000


def moved(transport: asyncio.BaseTransport | None) -> tuple[int, int] | None:
    """Bytes that the peer has sent, and bytes that it has taken, as TLS has them; None where nobody knows."""
    found = _told(transport, BYTES, BYTES_AT)
    return None if found is None else (found[1], found[0])


def _told(transport: asyncio.BaseTransport | None, wanted: Struct, at: int) -> tuple[Any, ...] | None:
    try:
        sock = None if transport is None else transport.get_extra_info("socket")
        if sock is None:
            return None
        found = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, at + wanted.size)
        return wanted.unpack_from(found, at)
    except (AttributeError, OSError, ValueError, StructError):  # it may be closed by now
        return None
