"""How long a record takes from a producer to a consumer: directly, through klamm, and through klamm while
nothing preempts it. Kafka's own EndToEndLatency, by turns, on three real brokers. Needs root (priority).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.brokers.jars import java
from tests.brokers.kraft import VERSION, kraft_cluster
from tests.e2e import topics
from tests.e2e.klamm_process import klamm_in_front_of

ROUNDS, RECORDS, BYTES = 7, 3000, 100
TOPIC = "end-to-end"
TOOLS = "4.3.1"  # the newest release whose kafka-tools is in Maven
APIS = ("Produce", "Fetch")
DIRECT, KLAMM, REAL_TIME = "direct", "klamm", "klamm, real-time"


@dataclass(frozen=True, slots=True)
class Taken:
    """ms."""

    average: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Own:
    """Reads of Produce and Fetch whose time klamm took itself, and how many seconds they took together."""

    reads: int
    seconds: float

    def __add__(self, other: Own) -> Own:
        return Own(self.reads + other.reads, self.seconds + other.seconds)

    def __sub__(self, other: Own) -> Own:
        return Own(self.reads - other.reads, self.seconds - other.seconds)

    @property
    def us_a_read(self) -> float:
        return self.seconds / self.reads * 1e6


def run(console: Console, rounds: int = ROUNDS, records: int = RECORDS) -> dict[str, Any]:
    """Raises CalledProcessError where the tool fails, PermissionError without root."""
    taken: dict[str, list[Taken]] = {DIRECT: [], KLAMM: [], REAL_TIME: []}
    own = dict.fromkeys((KLAMM, REAL_TIME), Own(0, 0.0))
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as name:
        folder = Path(name)
        with kraft_cluster(folder) as kafka:
            topics.create(kafka.bootstrap(), TOPIC, [[1, 2, 3]])
            with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", folder / "klamm.log") as klamm:
                for bootstrap in (kafka.bootstrap(), klamm.bootstrap):
                    _taken(bootstrap, records // 3)  # the first run waits for the JVMs
                for turn in range(rounds):
                    for way in sorted(taken, reverse=bool(turn % 2)):
                        if way == DIRECT:
                            taken[way].append(_taken(kafka.bootstrap(), records))
                            continue
                        before = _own(klamm.admin)
                        with _scheduled(klamm.process.child.pid, real_time=way == REAL_TIME):
                            taken[way].append(_taken(klamm.bootstrap, records))
                        own[way] += _own(klamm.admin) - before
    table = Table(title=f"{records:,} records of {BYTES} bytes, acks=all, Kafka {VERSION}, {rounds} rounds")
    for column in ("", "average", "p50", "p99"):
        table.add_column(column, justify="right" if column else "left")
    for way, found in taken.items():
        table.add_row(
            way, *(f"{median(getattr(t, f) for t in found):.2f} ms" for f in ("average", "p50", "p99"))
        )
    console.print(table)
    added = {}
    for way, spent in own.items():
        more = added[way] = [k.average - d.average for d, k in zip(taken[DIRECT], taken[way], strict=True)]
        console.print(
            f"{way} adds {median(more):.2f} ms ({min(more):.2f} to {max(more):.2f}) on average, "
            f"own time: {spent.us_a_read:.0f} us a read, of {spent.reads:,} reads that it timed"
        )
    return {
        "taken": {way: [asdict(one) for one in found] for way, found in taken.items()},
        "added_ms": added,
        "own_us": {way: spent.us_a_read for way, spent in own.items()},
    }


@contextmanager
def _scheduled(pid: int, real_time: bool) -> Iterator[None]:
    """The process at real-time priority for a while, so that no other one preempts it; or as it is."""
    if real_time:
        os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


def _taken(bootstrap: str, records: int) -> Taken:
    options = {
        "bootstrap-server": bootstrap,
        "topic": TOPIC,
        "num-records": records,
        "producer-acks": "all",
        "record-size": BYTES,
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    said = subprocess.run(
        java(TOOLS, "org.apache.kafka.tools.EndToEndLatency", *words),
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    ).stdout
    average = re.search(r"Avg latency: ([0-9.]+) ms", said)
    p50, p99 = re.search(r"50th = ([0-9]+)", said), re.search(r"99th = ([0-9]+)", said)
    assert average, said
    assert p50, said
    assert p99, said
    return Taken(float(average[1]), int(p50[1]), int(p99[1]))


def _own(admin: str) -> Own:
    with urllib.request.urlopen(f"http://{admin}/v1/counters", timeout=10) as answer:
        rows = json.load(answer)["requests"]
    own = [row["own"] for row in rows if row["api"] in APIS]
    return Own(sum(sum(one["buckets"]) for one in own), sum(one["sum_s"] for one in own))
