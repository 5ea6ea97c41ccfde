"""A producer and a consumer of one library at work for as long as a test needs them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from tests.brokers.kraft import Cluster
from tests.brokers.processes import Process, wait_for
from tests.clients import programs, records
from tests.e2e import topics


class Pair:
    """A producer of `count` records, and a consumer of them in a group, on a topic of their own."""

    def __init__(
        self, client: str, kafka: Cluster, bootstrap: str, folder: Path, topic: str, count: int
    ) -> None:
        self.kafka, self.topic, self.count = kafka, topic, count
        self.whole = records.expected(topic, "seed", range(count))
        topics.create(kafka.bootstrap(), topic, topics.spread())
        self.reading = {"do": "consume", "topic": topic, "count": count}
        actions: tuple[dict[str, Any], ...] = (
            self.reading | {"group": topic, "unique": True, "list": True, "count": len(set(self.whole))},
            {"do": "produce", "topic": topic, "count": count, "per_s": 60, "idempotent": True},
        )
        self.processes = [
            Process(programs.command(client, bootstrap, action), folder / f"{topic}-{action['do']}.log")
            for action in actions
        ]

    @property
    def produces(self) -> bool:
        return self.processes[-1].running

    @property
    def ended(self) -> bool:
        return not any(each.running for each in self.processes)

    def check(self) -> None:
        """All was acknowledged, consumed, and is stored once."""
        [consumed], [produced] = (programs.results(each.log.read_text()) for each in self.processes)
        assert (produced["acknowledged"], produced["failed"]) == (self.count, [])
        assert set(consumed["fingerprints"]) == set(self.whole)
        again = self.reading | {"group": f"{self.topic}-again"}
        command = programs.command("librdkafka", self.kafka.bootstrap(), again)
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
        [stored] = programs.results(done.stdout)
        assert (stored["count"], stored["digest"]) == (self.count, records.digest(self.whole))


class SteadyClients:
    """One pair after the other, until the context ends: then all of them are checked."""

    def __init__(
        self, client: str, kafka: Cluster, bootstrap: str, folder: Path, name: str, count: int
    ) -> None:
        self.of = client, kafka, bootstrap, folder
        self.name, self.count = name, count
        self.pairs: list[Pair] = []

    def __enter__(self) -> SteadyClients:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                wait_for(lambda: all(pair.ended for pair in self.pairs), "the clients' end", timeout_s=120)
                for pair in self.pairs:
                    pair.check()
        finally:
            for pair in self.pairs:
                for process in pair.processes:
                    process.stop()

    def work(self) -> bool:
        """True; a new pair begins where the producer of the one before is done."""
        if not self.pairs or not self.pairs[-1].produces:
            self.pairs.append(Pair(*self.of, f"{self.name}-{len(self.pairs)}", self.count))
        return True
