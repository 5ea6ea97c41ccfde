"""Connects to brokers, at the address where klamm reaches them, and never to klamm itself."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from klamm.proxy import config
from klamm.proxy.cluster.conversation import UNDIALLED, Conversation, Way, why_unreachable
from klamm.proxy.cluster.own_requests.contact import offered_by
from klamm.proxy.cluster.own_requests.discovery import in_time, log_in
from klamm.proxy.cluster.own_sasl.sasl import OwnSession
from klamm.proxy.cluster.patience import within
from klamm.proxy.config_types import Address
from klamm.proxy.edge.exchanging import Exchanging
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.session.rewriting.topology import Topology

NO_FILES = (errno.EMFILE, errno.ENFILE)
LISTED = 20  # addresses in a line of the log
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def lacks_files(error: BaseException | None) -> bool:
    """Did klamm fail to connect because no file could be opened? Then the broker may be well."""
    return isinstance(error, OSError) and (error.errno in NO_FILES or lacks_files(error.__cause__))


def say_unused(settings: config.Cluster, topology: Topology, log: EventLog) -> None:
    """Warn of entries of `map` that no known node advertises: they may be misspelt."""
    nodes = {Address(node.host, node.port) for node in topology.nodes.values()}
    for unused in settings.map.keys() - nodes - set(settings.bootstrap) if nodes else ():
        more = [f"and {len(nodes) - LISTED} more"] if len(nodes) > LISTED else []
        said = ", ".join([*map(str, sorted(nodes)[:LISTED]), *more])
        message = f"map: no node advertises {unused} now; they advertise {said}"
        log.event("map_unused", message, "warning", cluster=settings.name, per=unused)


async def _log_in(protocol: Exchanging, name: str, address: Address, way: Way) -> OwnSession | None:
    conversation = Conversation(address, protocol.reader, protocol.transport, name)
    return await log_in(conversation, way, await offered_by(conversation, way.api_versions))


async def _dial(
    make: Callable[[], asyncio.Protocol],
    address: Address,
    connected: Callable[[], Awaitable[socket.socket]] | None,
    tls: Mapping[str, Any],
) -> tuple[asyncio.Transport, asyncio.Protocol]:
    loop = asyncio.get_running_loop()
    if connected is None:
        return await loop.create_connection(make, *address, **tls)
    return await loop.create_connection(make, sock=await connected(), **tls)


def _circular(address: Address, advertised: Address) -> str:
    return f"{address} is klamm itself: say where the broker is with --map {advertised}=HOST:PORT"


class Dialler:
    """`own`: the addresses of klamm's listening ports, and others that were found to lead to them.
    `attempted` is called after each attempt, with whether it connected.
    """

    def __init__(self, way: Way, reached_at: Mapping[Address, Address]) -> None:
        self.way, self.reached_at = way, reached_at
        self.own: set[tuple[str, int]] = set()
        self.refused: set[Address] = set()  # brokers with which klamm could not authenticate last
        self.attempted: Callable[[Address, bool], None] = lambda advertised, connected: None

    def take_tls(self, context: ssl.SSLContext) -> None:
        """From now on connect with this one."""
        self.way = self.way._replace(tls=context)

    def ask_with(self, api_versions: int) -> None:
        """From now on ask with this version of ApiVersions."""
        if self.way.api_versions != api_versions:
            self.way = self.way._replace(api_versions=api_versions)

    def reachable(self, address: Address) -> Address:
        """The address at which klamm reaches a broker that advertises this one."""
        return self.reached_at.get(address, address)

    def elsewhere(self, advertised: Address) -> Address:
        """The same. Raises OSError whose text says what to do, where that is klamm itself."""
        address = self.reachable(advertised)
        if address in self.own:
            raise OSError(_circular(address, advertised))
        return address

    async def dial(
        self,
        advertised: Address,
        make: Callable[[], asyncio.Protocol],
        expires: Callable[[OwnSession], None] = lambda session: None,
        connected: Callable[[], Awaitable[socket.socket]] | None = None,
        opaque: bool = False,
    ) -> asyncio.Transport:
        """Connect, and authenticate where klamm has credentials; `expires` gets a session that
        ends. `connected` gives a socket that is connected to the broker, wherever that is.
        `opaque`: the client itself speaks TLS with the broker. Raises OSError whose text says what to do.
        """
        way = self.way._replace(tls=None, credentials=None) if opaque else self.way
        address = self.elsewhere(advertised) if connected is None else self.reachable(advertised)
        tls: dict[str, Any] = {}
        if way.tls is not None:
            named = way.name_of(address.host)
            tls = {"ssl": way.tls, "server_hostname": named, "ssl_shutdown_timeout": way.timeout_s}
        first = make if way.credentials is None else Exchanging
        if way.credentials is not None:
            await way.credentials(False)  # a broker is not to blame if that takes long
        try:
            dial = _dial(first, address, connected, tls)
            transport, protocol = await within(way.timeout_s, dial, lambda late: late[0].abort())
        except UNDIALLED as error:
            if not lacks_files(error):
                self.attempted(advertised, False)
            raise OSError(why_unreachable(address, error, way)) from error
        if self._is_own(transport):
            self.own.add(address)
            transport.abort()
            raise OSError(_circular(address, advertised))
        if isinstance(protocol, Exchanging):
            try:
                session = await in_time(address, way, partial(_log_in, protocol, advertised.host))
            except BaseException as error:
                transport.abort()
                if isinstance(error, OSError):
                    self.refused.add(advertised)
                    self.attempted(advertised, False)
                raise
            made = make()
            transport.set_protocol(made)
            made.connection_made(transport)
            if session is not None:
                expires(session)
        self.refused.discard(advertised)
        self.attempted(advertised, True)
        return transport

    def _is_own(self, transport: asyncio.Transport) -> bool:
        """Does it lead back to klamm? It would connect to itself until no file is left to open."""
        there, here = (transport.get_extra_info(name) for name in ("peername", "sockname"))
        if there is None:
            return False
        everywhere = there[0] == here[0] and any((host, there[1]) in self.own for host in ANY_ADDRESS)
        return there[:2] in self.own or everywhere
