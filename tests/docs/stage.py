"""The machine that the pages speak of: a network of its own in which kafka-1:9092 is a cluster.

Commands run in it as they are written: hosts have the names of the pages, and klamm's usual ports are free.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.brokers import certificates
from tests.brokers.jars import ROOT
from tests.brokers.processes import Process, wait_for

BIN = Path(sys.executable).parent
HOSTS = ("kafka-1", "kafka-2", "test-1", "test-2", "test-kafka", "kafka-1.internal", "kafka-2.internal",
         "proxy.example.com", "klamm.example.com")  # fmt: skip
CLUSTERS = """\
clusters:
  - name: plain
    bootstrap: "{0}"
    listen: 127.0.0.1:9092-9199
    advertise: kafka-1
    ports: {{1: 9141, 2: 9142, 3: 9143}}
  - {{name: six, bootstrap: "{0}", listen: "[fd00::1]:9092-9099"}}
  - {{name: tls, bootstrap: "{0}", listen: 127.0.0.2:9093-9099, advertise: kafka-1}}
admin: none
rules: {1}/slow.yaml
"""
# klamm before klamm: to the second, whose commands the pages show, the brokers are slow now and then.
SLOW = "rules: [{api: Produce, client: legacy-app, chance: 20%, delay: 200ms}]\n"
ADDRESSES = " && ".join(
    ["ip link set lo up", *(f"ip address add {it} dev lo" for it in ("10.0.0.1", "10.0.0.2", "fd00::1"))]
)
SECURE = (9093, 9095, 9096, 9097)  # of the cluster `tls`: bootstrap and three brokers
PATIENCE_S = 120.0


class Stage:
    """The network, and what runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._hosts = folder / "hosts"
        self._hosts.write_text(f"127.0.0.1 localhost {' '.join(HOSTS)}\n::1 localhost\n")
        inside = f"{ADDRESSES} && mount --bind {self._hosts} /etc/hosts && echo up && exec sleep infinity"
        command = ["unshare", "--net", "--mount", "bash", "-c", inside]
        self.anchor = Process(command, folder / "network.log")
        self.started: list[Process] = []
        wait_for(lambda: "up" in self.anchor.log.read_text(), "the network", [self.anchor])

    def command(self, script: str, folder: Path) -> list[str]:
        """A script for bash, as a command that runs in the network and in this folder."""
        enter = ["nsenter", "--target", str(self.anchor.child.pid), "--net", "--mount"]
        return [*enter, "bash", "-c", f"cd {folder} && {script}"]

    def start(self, name: str, script: str, ready: str) -> Process:
        """Something that goes on running, once it has printed `ready`."""
        (self.folder / f"{name}.log").unlink(missing_ok=True)
        process = Process(self.command(script, ROOT), self.folder / f"{name}.log", environment())
        self.started.append(process)
        wait_for(lambda: ready in process.log.read_text(), f"{name}: {ready}", [process])
        return process

    def run(self, script: str, folder: Path, until: str | None = None) -> tuple[int, str]:
        """The exit code of a script and all that it printed; `until` it has printed this it is let run, and
        interrupted as by Ctrl-C.
        """
        with (folder / ".output").open("w+", errors="replace") as output:
            process = subprocess.Popen(
                self.command(script, folder),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment(),
                start_new_session=True,
            )
            ends = time.monotonic() + PATIENCE_S
            try:
                while until is not None and process.poll() is None and time.monotonic() < ends:
                    if until in (folder / ".output").read_text(errors="replace"):
                        os.killpg(process.pid, signal.SIGINT)
                        break
                    time.sleep(0.05)
                code = process.wait(max(1.0, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            return code, (folder / ".output").read_text(errors="replace")

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Processes started within end with it, the newest first."""
        known = len(self.started)
        try:
            yield
        finally:
            while len(self.started) > known:
                self.started.pop().stop()


def environment() -> dict[str, str]:
    """That of somebody who has just opened a terminal and activated the virtual environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KLAMM", "PYTEST"))}
    return {**kept, "PATH": f"{BIN}:{os.environ['PATH']}", "EDITOR": "true", "PYTHONUNBUFFERED": "1"}


@contextmanager
def cluster(folder: Path) -> Iterator[Stage]:
    """The network with its two clusters: one in plain text, one behind TLS."""
    folder.mkdir(parents=True)
    stage = Stage(folder)
    with stage.alone():
        stage.start("kafka", "exec python -m klamm.cli.demo.cluster 2>/dev/null", "\n")
        bootstrap = (folder / "kafka.log").read_text().strip()
        (folder / "clusters.yaml").write_text(CLUSTERS.format(bootstrap, folder))
        (folder / "slow.yaml").write_text(SLOW)
        stage.start("clusters", f"exec klamm run --config {folder}/clusters.yaml", "klamm stands")
        certificates.make(folder, ["localhost", "10.0.0.1", "10.0.0.2", *HOSTS])
        ports = " ".join(map(str, SECURE))
        stage.start("tls", f"exec python -m tests.docs.tls_door {folder}/broker.pem {ports}", "open")
        yield stage
    stage.anchor.kill()


@contextmanager
def with_klamm(stage: Stage, *options: str) -> Iterator[None]:
    """klamm at its usual ports, with clients that work through it."""
    with stage.alone():
        stage.start("klamm", " ".join(["exec klamm run kafka-1:9092", *options]), "metrics and health")
        stage.start("clients", "exec python -m tests.docs.clients 127.0.0.1:19092", "work")
        yield
