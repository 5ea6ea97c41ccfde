"""A listening port whose connections klamm accepts itself: so it can look at their first bytes, say why one
failed, and bound those that never get to speak Kafka.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from klamm.proxy.edge import sockets
from klamm.proxy.edge.accepting.acceptor import Refused
from klamm.proxy.edge.accepting.entrants import Entrants
from klamm.proxy.edge.accepting.inherited import INHERITED, LISTENING
from klamm.proxy.edge.accepting.pace import Pace

MOST = 256  # connections on their way in at a port
BATCH = 32  # connections that are accepted before others have their turn
NOBODY = ("", 0)  # no client in particular
CONNECTS = "limits.connects_per_second"
NO_FILES_S = 1.0  # klamm accepts none for so long after the system gave it no file


class Enter(Protocol):
    """The way in of a connection: an Entrance, or the way to another process that has one."""

    def enter(self, sock: socket.socket, peer: tuple[str, int]) -> Coroutine[Any, Any, None]:
        """Give the socket a protocol, or close it."""

    def takes(self, again: Callable[[], None]) -> bool:
        """May a connection be accepted for it now? If not, it calls `again` once one may."""

    @property
    def refused(self) -> Refused:
        """Is told of a connection that does not come in."""


class Listener:
    """Stands in for an asyncio.Server. Connections come in by `entrance`, no faster than `pace` allows."""

    def __init__(self, listening: Sequence[socket.socket], entrance: Enter, pace: Pace | None = None) -> None:
        self.sockets, self.entrance, self.pace = list(listening), entrance, pace
        self.rests = False  # after the system gave it no file
        self.loop = asyncio.get_running_loop()
        self.entrants = Entrants(MOST)
        self.closed = False
        self._listen()

    def _listen(self) -> None:
        self.rests = False
        for each in () if self.closed else self.sockets:
            self.loop.add_reader(each, self._accept, each)

    def _again(self) -> None:
        if not self.rests:
            self._listen()

    def _stop_listening(self) -> None:
        for each in self.sockets:
            self.loop.remove_reader(each)

    def close(self) -> None:
        """Take no new connections; end those on their way in. Once is enough."""
        if self.closed:
            return
        self.closed = True
        self._stop_listening()
        for each in self.sockets:
            each.close()
        self.entrants.cancel()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(BATCH):
            if not self.entrance.takes(self._again):
                self._stop_listening()  # the others wait in the queue of the system
                return
            if self.pace is not None and self.pace.wait_s():
                self._stop_listening()
                self.pace.wait(self._turn)
                return
            if not self._take(listening):
                return

    def _turn(self) -> None:
        """Accept a connection that has waited, if there is one; else listen as before."""
        if self.closed or self.pace is None or not self.entrance.takes(self._again):
            return
        self.sockets.append(self.sockets.pop(0))
        if any(self._take(each) for each in self.sockets):
            if self.pace.per_s:
                most = f"more than {self.pace.per_s} connections in a second"
                message = f"{most}: the others wait ({CONNECTS})"
                self.entrance.refused(NOBODY, "too_many_connects", message)
            self.pace.wait(self._turn)
        elif not self.rests:
            self._listen()

    def _take(self, listening: socket.socket) -> bool:
        """Accept a connection; False if there is none."""
        if self.rests:
            return False
        try:
            sock, name = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return False
        except OSError as error:
            self._stop_listening()
            self.rests = True
            self.loop.call_later(NO_FILES_S, self._listen)
            message = f"no client can be accepted: {error.strerror}"
            self.entrance.refused(NOBODY, "too_many_connections", message)
            return False
        if self.pace is not None:
            self.pace.count()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = sockets.address(name)
        self.entrants.let(peer[0], sock, self.entrance.enter(sock, peer))
        return True


async def bound(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets for each address of a host, inherited ones first; `::` takes IPv4 too. Port 0: a
    free one. Raises OSError.
    """
    found: list[socket.socket] = []
    both = host == "::" and socket.has_dualstack_ipv6()
    names = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    try:
        for family, address in dict.fromkeys((info[0], info[4][0]) for info in names):
            where = (str(address), port or (found[0].getsockname()[1] if found else 0))
            inherited = INHERITED.take(*where)
            made = inherited or socket.create_server(
                where, family=family, backlog=backlog, dualstack_ipv6=both
            )
            found.append(made)
    except OSError:
        for each in found:
            each.close()
        raise
    for each in found:
        each.setblocking(False)
    LISTENING.update(found)
    return found
