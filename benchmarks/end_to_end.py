"""How long a record takes from a producer to a consumer, with klamm between them and without: Kafka's own
EndToEndLatency, by turns, on three real brokers.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import urllib.request
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


@dataclass(frozen=True, slots=True)
class Taken:
    """ms."""

    average: float
    p50: float
    p99: float


def run(console: Console, rounds: int = ROUNDS, records: int = RECORDS) -> dict[str, Any]:
    """Raises CalledProcessError where the tool fails."""
    taken: dict[str, list[Taken]] = {"direct": [], "klamm": []}
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as name:
        folder = Path(name)
        with kraft_cluster(folder) as kafka:
            topics.create(kafka.bootstrap(), TOPIC, [[1, 2, 3]])
            with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", folder / "klamm.log") as klamm:
                ways = {"direct": kafka.bootstrap(), "klamm": klamm.bootstrap}
                for way in ways.values():
                    _taken(way, records // 3)  # the first run waits for the JVMs
                before = _own(klamm.admin)
                for turn in range(rounds):
                    for way in sorted(ways, reverse=bool(turn % 2)):
                        taken[way].append(_taken(ways[way], records))
                own = _own(klamm.admin)
    reads = own[0] - before[0]
    own_us = (own[1] - before[1]) / reads * 1e6
    table = Table(title=f"{records:,} records of {BYTES} bytes, acks=all, Kafka {VERSION}, {rounds} rounds")
    for column in ("", "average", "p50", "p99"):
        table.add_column(column, justify="right" if column else "left")
    for way, found in taken.items():
        table.add_row(
            way, *(f"{median(getattr(t, f) for t in found):.2f} ms" for f in ("average", "p50", "p99"))
        )
    added = [k.average - d.average for d, k in zip(taken["direct"], taken["klamm"], strict=True)]
    console.print(table)
    console.print(f"klamm adds {median(added):.2f} ms ({min(added):.2f} to {max(added):.2f}) on average")
    console.print(f"klamm's own time: {own_us:.0f} us a read, of {reads:,} reads that it timed")
    return {
        "taken": {way: [asdict(one) for one in found] for way, found in taken.items()},
        "added_ms": added,
        "own_us": own_us,
    }


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


def _own(admin: str) -> tuple[int, float]:
    """Reads of Produce and Fetch whose time klamm took itself, and how many seconds they took together."""
    with urllib.request.urlopen(f"http://{admin}/v1/counters", timeout=10) as answer:
        rows = json.load(answer)["requests"]
    own = [row["own"] for row in rows if row["api"] in APIS]
    return sum(sum(one["buckets"]) for one in own), sum(one["sum_s"] for one in own)
