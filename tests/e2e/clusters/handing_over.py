"""Starts one klamm after the other, each in the place of the one before."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.e2e.klamm_process import COMMAND, Klamm


class Klamms:
    """All with the same settings; they end with the context."""

    def __init__(self, kafka: Cluster, folder: Path, *options: str) -> None:
        self.folder, self.first, self.admin = folder, free_block("127.0.0.1"), f"127.0.0.1:{free_ports()}"
        listen = f"127.0.0.1:{self.first}-{self.first + 99}"
        self.command = [str(COMMAND), "run", kafka.bootstrap(), "--listen", listen, "--admin", self.admin]
        self.command += ["--advertise", "127.0.0.1", "--state", str(folder / "state"), *options]
        self.command += ["--handover", str(folder / "handover")]
        self.running: list[Process] = []
        self.numbers = count()

    def __enter__(self) -> Klamms:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.running:
            each.stop()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.first}"

    def start(self, *options: str) -> Klamm:
        """It serves the clients, and the one before has ended by itself."""
        log = self.folder / f"klamm-{next(self.numbers)}.log"
        process = Process([*self.command, *options], log)
        self.running.append(process)
        wait_for(
            lambda: "admin API:" in log.read_text() or "metrics and health" in log.read_text(),
            "klamm",
            [process],
        )
        for before in self.running[-2:-1]:
            assert before.child.wait(30) == 0, before.tail()
            assert "Traceback" not in before.log.read_text()
        return Klamm(process, "127.0.0.1", self.first, self.admin)

    def kill(self) -> None:
        """SIGKILL to the last one."""
        self.running.pop().kill()
