"""Listening sockets that others opened for klamm: systemd, which keeps them while klamm is restarted
(sd_listen_fds(3) has the convention), or the klamm before, of which this one takes the place.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from weakref import WeakSet

FIRST = 3  # the number of the first open file
LISTENING: WeakSet[socket.socket] = WeakSet()  # the sockets that this process listens with, and closed ones


class Inherited:
    """By their addresses; each can be taken once."""

    def __init__(self) -> None:
        self.by_address: dict[tuple[str, int], socket.socket] = {}
        self.handed_over: dict[tuple[str, int], socket.socket] = {}

    def find(self, environment: Mapping[str, str]) -> list[str]:
        """Note those that systemd passed to this process. Gives sentences about others."""
        if environment.get("LISTEN_PID") != str(os.getpid()):
            return []
        unfit: list[str] = []
        for file in range(FIRST, FIRST + int(environment.get("LISTEN_FDS", "0"))):
            os.set_inheritable(file, False)
            sock = socket.socket(fileno=file)
            listens = sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM
            if listens and sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                self.by_address[sock.getsockname()[:2]] = sock
            else:
                unfit.append(f"socket {file} of systemd is left alone: it is no listening TCP socket")
        return unfit

    def hand_over(self, sockets: Iterable[socket.socket]) -> None:
        """Note those of the klamm before."""
        self.handed_over.update({each.getsockname()[:2]: each for each in sockets})

    def take(self, host: str, port: int) -> socket.socket | None:
        """The socket of this address, or of all addresses of the host."""
        for at in ((host, port), ("::" if ":" in host else "0.0.0.0", port), ("::", port)):
            for sockets in (self.handed_over, self.by_address):
                if at in sockets:
                    return sockets.pop(at)
        return None

    def has(self, port: int) -> bool:
        return any(at[1] == port for at in (*self.handed_over, *self.by_address))

    def left(self) -> list[str]:
        """The addresses at which systemd listens, and that nobody has taken."""
        return [f"{host}:{port}" for host, port in self.by_address]

    def close_handed_over(self) -> None:
        """Close those of the klamm before that nobody has taken: their clients are refused at once."""
        for each in self.handed_over.values():
            each.close()
        self.handed_over.clear()


INHERITED = Inherited()


def listening() -> list[socket.socket]:
    """The sockets that this process listens with."""
    return [each for each in LISTENING if each.fileno() >= 0]
