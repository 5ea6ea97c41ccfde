"""The way to a broker: where klamm reaches what it advertises, and not back to klamm."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Mapping
from typing import Any

from klamm.proxy.cluster.discovery import UNDIALLED, Way, why_unreachable
from klamm.proxy.config import Address

NO_FILES = (errno.EMFILE, errno.ENFILE)
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def lacks_files(error: BaseException | None) -> bool:
    """Was nothing dialled for want of a file? That says nothing of the broker."""
    return isinstance(error, OSError) and (error.errno in NO_FILES or lacks_files(error.__cause__))


class Dialler:
    """`own`: where klamm's listeners are, and what was found to lead there. `attempted` is told of each
    attempt whether it connected.
    """

    def __init__(self, way: Way, reached_at: Mapping[Address, Address]) -> None:
        self.way, self.reached_at = way, reached_at
        self.own: set[tuple[str, int]] = set()
        self.attempted: Callable[[Address, bool], None] = lambda advertised, connected: None

    def reachable(self, address: Address) -> Address:
        """Where klamm reaches what a broker advertises."""
        return self.reached_at.get(address, address)

    async def dial(self, advertised: Address, make: Callable[[], asyncio.Protocol]) -> asyncio.Transport:
        """Raises OSError that says what to do."""
        loop, way, address = asyncio.get_running_loop(), self.way, self.reachable(advertised)
        circular = f"{address} is klamm itself: say where the broker is with --map {advertised}=HOST:PORT"
        if address in self.own:
            raise OSError(circular)
        tls: dict[str, Any] = {}
        if way.tls is not None:
            named = way.name_of(address.host)
            tls = {"ssl": way.tls, "server_hostname": named, "ssl_shutdown_timeout": way.timeout_s}
        try:
            async with asyncio.timeout(way.timeout_s):
                transport, _ = await loop.create_connection(make, *address, **tls)
        except UNDIALLED as error:
            if not lacks_files(error):
                self.attempted(advertised, False)
            raise OSError(why_unreachable(address, error, way)) from error
        if self._is_own(transport):
            self.own.add(address)
            transport.abort()
            raise OSError(circular)
        self.attempted(advertised, True)
        return transport

    def _is_own(self, transport: asyncio.Transport) -> bool:
        """Does it lead back to klamm, where it would go round until no file is left to open?"""
        there, here = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        if there is None:
            return False
        everywhere = there[0] == here[0] and any((host, there[1]) in self.own for host in ANY_ADDRESS)
        return there[:2] in self.own or everywhere
