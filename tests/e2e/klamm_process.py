"""`klamm run` as a process of its own, ready when the context begins."""

import json
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.brokers.processes import Process, free_block, free_ports, wait_for

FORESEEN = {"endpoints_blanked", "broker_unreachable"}  # a large Fetch response, a broker that was killed
COMMAND = Path(sys.executable).parent / "klamm"


def get(url: str) -> str:
    """The body of an answer; HTTPError, closed, where its status is not 200."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        error.close()
        raise


class Klamm:
    """A running klamm: where clients bootstrap, the host it advertises, its admin address and its process."""

    def __init__(self, process: Process, host: str, port: int, admin: str) -> None:
        self.process = process
        self.host = host
        self.port = port
        self.admin = admin

    @property
    def bootstrap(self) -> str:
        """As bootstrap.servers takes it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def address(self) -> tuple[str, int]:
        """The bootstrap address as a socket takes it."""
        return self.host, self.port

    def get(self, path: str) -> str:
        """The body of an answer of the admin API; HTTPError where its status is not 200."""
        return get(f"http://{self.admin}{path}")

    def counters(self) -> Any:
        """/v1/counters."""
        return json.loads(self.get("/v1/counters"))

    def problems(self) -> list[Any]:
        """What klamm could not read or would not pass, as it counts it."""
        return [row for row in self.counters()["problems"] if row["kind"] not in FORESEEN]

    def ready(self) -> bool:
        """Whether /readyz says so now."""
        try:
            return bool(self.get("/readyz"))
        except urllib.error.HTTPError:
            return False

    def wait_until_listening(self) -> None:
        """Wait until the bootstrap port takes connections, which it may do before klamm is ready."""

        def accepts() -> bool:
            with socket.create_connection(self.address, timeout=5):
                return True

        wait_for(accepts, "klamm", [self.process])


@contextmanager
def klamm_in_front_of(
    bootstrap: str,
    host: str,
    log: Path,
    *options: str,
    first: int | None = None,
    advertise: bool = True,
    ready: bool = True,
) -> Iterator[Klamm]:
    """`klamm run` before `bootstrap`, listening on `host` from port `first` on, and advertising it.

    It has to be ready at the beginning where `ready` is set, and to have met no problem at the end.
    """
    admin = f"127.0.0.1:{free_ports()}"
    port = first or free_block(host)
    listen = f"[{host}]:{port}-{port + 99}" if ":" in host else f"{host}:{port}-{port + 99}"
    told = ["--advertise", host] if advertise else []
    command = [str(COMMAND), "run", bootstrap, "--listen", listen, "--admin", admin, *told, *options]
    process = Process(command, log)
    try:
        klamm = Klamm(process, host, port, admin)
        if ready:
            wait_for(klamm.ready, "klamm", [process])
        yield klamm
        problems = klamm.problems()
    finally:
        exit_code = process.stop()
    text = log.read_text(errors="replace")
    assert "Traceback" not in text, text[-8000:]
    assert problems == []
    assert exit_code == 0, process.tail()
