"""Hands the listening sockets of this klamm to the next one: an upgrade that refuses no client.

The next klamm connects to a UNIX socket of this one. Messages are packets of JSON: a Giving, with the sockets
as open files beside it, until its `more` is false; then, once the next klamm has found the clusters that are
ready here, its pid; at last this klamm's own pid, when it listens no more. Either side ends the connection to
give up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec

from klamm.proxy.edge.accepting.inherited import INHERITED, listening
from klamm.proxy.log.events import Events

FILES = 64  # in a packet; Linux takes 253
LARGEST = 1 << 16  # bytes of a packet
TALK_S = 10.0  # for one packet
READY_S = 60.0  # for the next klamm to find the clusters
PROBED_S = 1.0  # before the drain: probes whose connections have been accepted learn nothing of it
PEER = struct.Struct("iII")  # struct ucred: pid, uid, gid


class Giving(msgspec.Struct, frozen=True):
    """`ready`: the clusters whose clients may come."""

    pid: int
    ready: list[str]
    more: bool


class NotTaken(Exception):
    """klamm cannot take the place of the one before; the text says why."""


class Handover:
    """`path` None: none comes next. `ready` gives the names of the clusters that are ready, `leave` gets the
    pid of the klamm that serves them from then on.
    """

    def __init__(
        self, path: str | None, ready: Callable[[], Iterable[str]], leave: Callable[[int], None], log: Events
    ) -> None:
        self.path = None if path is None else Path(path)
        self.ready, self.leave, self.log = ready, leave, log
        self.listening: socket.socket | None = None
        self.task: asyncio.Task[None] | None = None

    def listen(self) -> None:
        """Wait for the next klamm. Raises OSError whose text says what to change."""
        if self.path is None:
            return
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
        try:
            os.fchmod(sock.fileno(), 0o600)
            if self.path.is_socket():
                self.path.unlink()  # nobody listens there: `take_over` has asked
            sock.bind(str(self.path))
            sock.listen(4)
        except OSError as error:
            sock.close()
            raise OSError(f"handover: cannot listen at {self.path}: {error.strerror or error}") from error
        self.listening = sock
        asyncio.get_running_loop().add_reader(sock, self._accept, sock)

    def close(self) -> None:
        """Wait no more. Once is enough."""
        if self.listening is not None and self.path is not None:
            asyncio.get_running_loop().remove_reader(self.listening)
            self.listening.close()
            self.listening = None
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(BlockingIOError):
            sock, _ = listening.accept()
            pid, uid, _ = PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
            if uid not in (os.geteuid(), 0) or (self.task is not None and not self.task.done()):
                sock.close()
                return
            self.task = asyncio.get_running_loop().create_task(self._hand_over(sock, pid))

    async def _hand_over(self, sock: socket.socket, pid: int) -> None:
        """To the process `pid`, which may give up at any time: then this klamm goes on."""
        with sock:
            try:
                given = await asyncio.to_thread(self._give, sock)
                message = (
                    f"another klamm (pid {pid}) gets {given} listening sockets, to take the place of this one"
                )
                self.log.event("handover", message, pid=pid, sockets=given)
                sock.setblocking(False)
                serves = await asyncio.get_running_loop().sock_recv(sock, LARGEST)
            except OSError:
                serves = b""
            if not serves:
                message = f"the klamm that was to take over (pid {pid}) has given up: this one goes on"
                self.log.event("handover_failed", message, "warning", pid=pid)
                return
            self.close()
            self.leave(pid)
            with contextlib.suppress(OSError):
                sock.send(msgspec.json.encode(os.getpid()))

    def _give(self, sock: socket.socket) -> int:
        """Blocks. Gives the number of sockets. Raises OSError."""
        sock.settimeout(TALK_S)
        left, ready = listening(), list(self.ready())
        given = len(left)
        while True:
            files, left = left[:FILES], left[FILES:]
            packet = msgspec.json.encode(Giving(os.getpid(), ready, bool(left)))
            socket.send_fds(sock, [packet], [each.fileno() for each in files])
            if not left:
                return given


class Predecessor:
    """The klamm before, whose sockets this one has. `pid` and `ready` are its own."""

    def __init__(self, sock: socket.socket, pid: int, ready: Iterable[str]) -> None:
        self.sock, self.pid, self.ready = sock, pid, frozenset(ready)

    async def succeed(self, found: Mapping[str, asyncio.Event]) -> None:
        """Take its place once the clusters that are ready there are found here. Raises NotTaken."""
        loop = asyncio.get_running_loop()
        goes_on = f"the klamm before (pid {self.pid}) goes on"
        with self.sock:
            try:
                async with asyncio.timeout(READY_S):
                    await asyncio.gather(*(each.wait() for name, each in found.items() if name in self.ready))
            except TimeoutError as error:
                clusters = ", ".join(sorted(self.ready))
                why = f"{clusters}: ready there, and not found here within {READY_S:g} s"
                raise NotTaken(f"{why}; {goes_on}") from error
            try:
                self.sock.setblocking(False)
                async with asyncio.timeout(TALK_S):
                    await loop.sock_sendall(self.sock, msgspec.json.encode(os.getpid()))
                    left = await loop.sock_recv(self.sock, LARGEST)
            except OSError as error:
                raise NotTaken(f"it does not answer any more: {error}; look whether it runs") from error
            if not left:
                raise NotTaken(f"the klamm before (pid {self.pid}) has ended, or drains already")


def take_over(path: str) -> Predecessor | None:
    """Take the sockets of the klamm that waits at this path; None: there is none. Blocks. Raises NotTaken."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.settimeout(TALK_S)
    try:
        sock.connect(path)
        giving = _receive(sock)
    except (FileNotFoundError, ConnectionRefusedError):
        sock.close()
        return None
    except (OSError, msgspec.DecodeError, NotTaken) as error:
        sock.close()
        raise NotTaken(f"handover: {path} cannot be used: {error}") from error
    return Predecessor(sock, giving.pid, giving.ready)


def _receive(sock: socket.socket) -> Giving:
    """The sockets, and the last packet. Raises OSError, DecodeError and NotTaken."""
    while True:
        packet, files, _, _ = socket.recv_fds(sock, LARGEST, FILES)
        INHERITED.hand_over(_inherited(file) for file in files)
        if not packet:
            raise NotTaken("the klamm there drains, or another klamm takes over from it")
        giving = msgspec.json.decode(packet, type=Giving)
        if not giving.more:
            return giving


def _inherited(file: int) -> socket.socket:
    os.set_inheritable(file, False)
    return socket.socket(fileno=file)
