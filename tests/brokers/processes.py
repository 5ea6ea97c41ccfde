"""Processes that the tests start: each has a log file, and none outlives the test run."""

import contextlib
import fcntl
import functools
import itertools
import os
import signal
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, TypeVar

Answer = TypeVar("Answer")


started: "weakref.WeakSet[Process]" = weakref.WeakSet()


class Process:
    """A child process whose output goes to a file. It dies with the thread that started it, always."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str] | None = None) -> None:
        self.command = command
        self.log = log
        with log.open("ab") as output:
            self.child = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
            )
        started.add(self)

    @property
    def running(self) -> bool:
        return self.child.poll() is None

    def tail(self, lines: int = 40) -> str:
        """The last lines of the log, under a heading; of a broker only what is more than information."""
        text = self.log.read_text(errors="replace").splitlines()
        text = [line for line in text if " INFO " not in line][-lines:]
        return "\n".join([f"--- {self.log} (exit {self.child.poll()}) ---", *text])

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        if self.running:
            self.child.kill()
        self.child.wait(timeout=30)

    def stop(self, patience_s: float = 10.0, by: signal.Signals = signal.SIGTERM) -> int:
        """A signal, then SIGKILL after `patience_s`; the exit code."""
        if self.running:
            self.child.send_signal(by)
            try:
                return self.child.wait(timeout=patience_s)
            except subprocess.TimeoutExpired:
                self.child.kill()
        return self.child.wait(timeout=30)


def children(pid: int) -> list[int]:
    """The ids of a process's children. Raises OSError where it has gone."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for(
    question: Callable[[], Answer | None],
    what: str,
    processes: Iterable[Process] = (),
    timeout_s: float = 60.0,
) -> Answer:
    """Ask until the answer is truthy. TimeoutError or RuntimeError carries the logs of `processes`."""
    deadline = time.monotonic() + timeout_s
    watched = list(processes)
    last: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if answer := question():
                return answer
        except (OSError, EOFError) as error:
            last = error
        if dead := [process for process in watched if not process.running]:
            raise RuntimeError(f"{what}: a process ended\n" + "\n".join(process.tail() for process in dead))
        time.sleep(0.05)
    logs = "\n".join(process.tail() for process in watched)
    raise TimeoutError(f"{what}: not within {timeout_s:.0f} s (last error: {last})\n{logs}")


# Each test process leases a thousand ports while it lives: otherwise one looks whether a port is free, and
# another takes it. All are below those from which the kernel takes ports for outgoing connections (32,768).
# `klamm demo` keeps its own (19,091 on).
LEASED, BLOCK = 1_000, 100
LEASES = [first for first in range(10_000, 32_000, LEASED) if first != 19_000]
_leases: list[IO[bytes]] = []  # open, because a lock ends with its file


@functools.cache
def _leased() -> "tuple[itertools.cycle[int], itertools.cycle[int]]":
    """The ports that this process takes alone, in a circle: single ones, and the first ones of blocks."""
    for first in LEASES:
        with contextlib.ExitStack() as opened:
            try:
                lease = Path(tempfile.gettempdir(), f"klamm-tests-{first}.lock")
                file = opened.enter_context(lease.open("ab"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):
                continue
            _leases.append(file)
            opened.pop_all()
        middle, end = first + 6 * BLOCK, first + LEASED
        return itertools.cycle(range(middle, end)), itertools.cycle(range(first, middle, BLOCK))
    raise RuntimeError(f"{len(LEASES)} test processes have leased all ports: wait until one has ended")


def free_ports(count: int = 1, host: str = "127.0.0.1") -> int:
    """The first of `count` adjacent free ports; no two calls give the same one soon."""
    singles, _ = _leased()
    for _ in range(100):
        ports = [next(singles) for _ in range(count)]
        if ports[-1] - ports[0] == count - 1 and _are_free(ports, host):
            return ports[0]
    raise RuntimeError(f"no {count} adjacent free ports on {host}")


def free_block(host: str = "127.0.0.1") -> int:
    """The first of 100 adjacent free ports, as a klamm takes them. No port of `free_ports` is among them."""
    _, blocks = _leased()
    for _ in range(12):
        first = next(blocks)
        if _are_free(range(first, first + BLOCK), host):
            return first
    raise RuntimeError(f"no {BLOCK} adjacent free ports on {host}")


def _are_free(ports: Iterable[int], host: str) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as bound:
        try:
            for port in ports:
                bound.enter_context(socket.create_server((host, port), family=family))
        except OSError:
            return False
    return True
