"""The clients of a run: producers and consumers of several libraries, and copiers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.brokers.processes import Process
from tests.clients import programs, records
from tests.soak import copier

ORDERS, COPIES = "orders", "copies"
PARTITIONS, SIZE = 6, 64
PER_S = 20  # records of each producer
SLACK_S = 180  # beyond the time in which a client should be done
COPIERS = ("copier-1", "copier-2")
# With several requests at a time librdkafka may store a record twice as a leader changes (its issue 4953).
PRODUCERS: dict[str, dict[str, Any]] = {"librdkafka": {"in_flight": 1}, "java": {}, "aiokafka": {}}
CONSUMERS: dict[str, tuple[str, dict[str, Any]]] = {  # by name: the client, and what is its own
    "librdkafka-consumer": ("librdkafka", {"do": "consume", "protocol": "consumer"}),
    "java-classic": ("java", {"do": "consume", "protocol": "classic"}),
    "aiokafka-classic": ("aiokafka", {"do": "consume"}),
    "librdkafka-share": ("librdkafka", {"do": "share"}),
}


class Clients:
    """`seconds`: so long producers send, if nothing holds them up."""

    def __init__(self, bootstrap: str, folder: Path, seconds: float) -> None:
        self.bootstrap, self.folder = bootstrap, folder
        self.count = round(PER_S * seconds)
        self.sent = {name: records.expected(ORDERS, name, range(self.count), SIZE) for name in PRODUCERS}
        timeout_s = round(seconds) + SLACK_S
        producing = {"do": "produce", "topic": ORDERS, "count": self.count, "per_s": PER_S, "size": SIZE}
        producing |= {"idempotent": True, "acks": "all", "timeout_s": timeout_s}
        consuming = {"topic": ORDERS, "count": len(PRODUCERS) * self.count, "unique": True, "list": True}
        consuming |= {"timeout_s": timeout_s}
        self.producers = {
            name: self._start(f"{name}-producer", name, producing | {"seed": name} | own)
            for name, own in PRODUCERS.items()
        }
        self.consumers = {
            name: self._start(name, client, consuming | {"group": name} | own)
            for name, (client, own) in CONSUMERS.items()
        }
        self.copiers = {name: self._copier(name) for name in COPIERS}
        self.stuck = 0  # copiers, so often

    @property
    def produce(self) -> bool:
        return any(process.running for process in self.producers.values())

    @property
    def consume(self) -> bool:
        return any(process.running for process in self.consumers.values())

    def tend(self) -> None:
        """Another copier for one that was stuck. RuntimeError for a program that has failed."""
        for name, process in self.copiers.items():
            if not process.running:
                self.stuck += 1
                self.copiers[name] = self._copier(name)
        for process in [*self.producers.values(), *self.consumers.values()]:
            if process.child.poll():
                raise RuntimeError(f"a client has failed\n{process.tail()}")

    def kill_copier(self, name: str) -> None:
        """SIGKILL, and another of its name."""
        self.copiers[name].kill()
        self.copiers[name] = self._copier(name)

    def results(self, process: Process) -> list[dict[str, Any]]:
        """The results that a program printed."""
        return programs.results(process.log.read_text())

    def stop(self) -> None:
        for process in [*self.copiers.values(), *self.producers.values(), *self.consumers.values()]:
            process.stop()

    def _start(self, name: str, client: str, action: dict[str, Any]) -> Process:
        return Process(programs.command(client, self.bootstrap, action), self.folder / f"{name}.log")

    def _copier(self, name: str) -> Process:
        words = [sys.executable, str(Path(copier.__file__)), self.bootstrap, name, ORDERS, COPIES]
        return Process(words, self.folder / f"{name}.log")
