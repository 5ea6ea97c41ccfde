"""A proxy that is measured: where clients connect, its process, and how it is started."""

import os
import socket
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.traffic.client import Counters

Address = tuple[str, int]
HOST = "127.0.0.1"


class Absent(Exception):
    """A peer that cannot be measured here; the text says why."""


class Lost(Exception):
    """A peer that lost or changed what it was given."""


@dataclass(slots=True)
class Peer:
    """Where clients connect, and by which TLS; what is charged for it, and what went through it, by API key
    and version. `rewrites`: it puts addresses of its own into answers. `warm_up_s`: before each row, once.
    """

    name: str
    address: Address
    process: "subprocess.Popen[bytes] | None" = None
    tls: ssl.SSLContext | None = None
    admin: str = ""
    log: Path | None = None
    answers_after_s: float = 0.0
    reader: "subprocess.Popen[bytes] | None" = None
    counters: dict[tuple[int, int], Counters] = field(default_factory=dict)
    rewrites: bool = False
    warm_up_s: float = 0.15

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def log_tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").strip().splitlines()[-5:]) if self.log else ""


def free_ports(count: int) -> int:
    """The first of `count` adjacent ports that are free now."""
    while True:
        with socket.create_server((HOST, 0)) as probe:
            first: int = probe.getsockname()[1]
        held = []
        try:
            held = [socket.create_server((HOST, port)) for port in range(first, first + count)]
        except (OSError, OverflowError):
            continue
        finally:
            for sock in held:
                sock.close()
        return first


def launch(
    name: str,
    address: Address,
    command: list[str],
    folder: Path,
    cpus: set[int],
    environment: Mapping[str, str] = {},
) -> Peer:
    """Starts a proxy on these CPUs, with its log in the folder. Whoever calls waits until it answers, and
    stops it.
    """
    path = folder / f"{name}.log"
    with open(path, "wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **environment},
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
    return Peer(name, address, process, log=path)
