"""`klamm run` as a process of its own, ready when the context begins."""

import json
import signal
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.brokers.processes import Process, free_block, free_ports, wait_for

# a large Fetch response, a broker that was killed, a client with a wrong password
FORESEEN = {"endpoints_blanked", "broker_unreachable", "closed_unanswered", "sasl_refused"}
COMMAND = Path(sys.executable).parent / "klamm"


def get(url: str, authorization: str = "") -> str:
    """The body of an answer; HTTPError, closed, where its status is not 200."""
    request = urllib.request.Request(url, headers={"Authorization": authorization} if authorization else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        error.close()
        raise


class Klamm:
    """A running klamm: where clients bootstrap, the host it advertises, its admin address and its process."""

    def __init__(
        self, process: Process, host: str, port: int, admin: str, foreseen: Collection[str] = ()
    ) -> None:
        self.process = process
        self.host = host
        self.port = port
        self.admin = admin
        self.foreseen = FORESEEN.union(foreseen)
        self.authorization = ""  # the header with which its admin API is asked

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
        return get(f"http://{self.admin}{path}", self.authorization)

    def counters(self) -> Any:
        """/v1/counters."""
        return json.loads(self.get("/v1/counters"))

    def problems(self) -> list[Any]:
        """Counts of frames that klamm could not read or would not pass."""
        return [row for row in self.counters()["problems"] if row["kind"] not in self.foreseen]

    def assert_no_problems(self) -> None:
        found = self.problems()
        assert found == [], self.told_of(found)

    def told_of(self, problems: list[Any]) -> str:
        """The lines of its log about these problems, and the last lines."""
        kinds = [f'"event":"{row["kind"]}"' for row in problems]
        log = self.process.log.read_text(errors="replace").splitlines()
        told = [line for line in log if any(kind in line for kind in kinds)]
        return "\n".join([*told, self.process.tail()])

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
    drains: bool = False,
    foreseen: Collection[str] = (),
    authorization: str = "",
) -> Iterator[Klamm]:
    """`klamm run` before `bootstrap`, listening on `host` from port `first` on, and advertising it.

    It has to be ready at the beginning where `ready` is set, and to have met no problem at the end, but those
    of the kinds that are `foreseen`. With `drains` it has been asked to drain by then, and ends by itself.
    """
    admin = f"127.0.0.1:{free_ports()}"
    port = first or free_block(host)
    listen = f"[{host}]:{port}-{port + 99}" if ":" in host else f"{host}:{port}-{port + 99}"
    advertised = ["--advertise", host] if advertise else []
    command = [
        str(COMMAND),
        "run",
        bootstrap,
        "--listen",
        listen,
        "--admin",
        admin,
        *advertised,
        *options,
    ]
    process = Process(command, log)
    try:
        klamm = Klamm(process, host, port, admin, foreseen)
        klamm.authorization = authorization
        if ready:
            wait_for(klamm.ready, "klamm", [process])
        yield klamm
        if drains:
            process.child.wait(timeout=30)
        assert process.running != drains, process.tail()
        problems = [] if drains else klamm.problems()
    except Exception as error:
        error.add_note(process.tail())
        raise
    finally:
        exit_code = process.stop(by=signal.SIGINT)
    text = log.read_text(errors="replace")
    assert "Traceback" not in text, text[-8000:]
    assert problems == [], klamm.told_of(problems)
    assert exit_code == 0, process.tail()
