"""A Metadata 12 response of about 27 KB, read by klamm and others, and its addresses replaced."""

import gc
import statistics
import sys
import timeit
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks import frames
from klamm.decoders import decode
from klamm.proxy.rewrite import rewrite
from klamm.rules.plan import Planner, Wishes

TOPICS, PARTITIONS, REPLICAS = 20, 31, 3
BROKERS, MANY_BROKERS = 3, 12
KLAMM, KAFKA_PYTHON, KIO = "klamm read", "kafka-python 3 read", "kio read"
SPLICE, SPLICE_MANY = (f"klamm find and splice {count} addresses" for count in (BROKERS, MANY_BROKERS))
DECODE_TARGET = 1 / 3
SPLICE_TARGET = 10 / 1200

Task = Callable[[], Any]


def metadata(brokers_count: int) -> bytes:
    """The body, without its header."""
    brokers = [(i, f"broker-{i:02}.eu-central.kafka.example.com", 9092) for i in range(brokers_count)]
    topics = {f"orders-by-region-{i:02}": frames.TOPIC_ID[:-1] + bytes([i]) for i in range(TOPICS)}
    return frames.metadata_body(brokers, topics, PARTITIONS, REPLICAS, "klamm-bench-cluster-01")


def tasks(body: bytes) -> tuple[dict[str, Task], dict[str, str]]:
    """What is timed, by name, each tried once here; and what cannot be, with the reason."""
    endpoints = Planner(Wishes()).plan(frames.METADATA, 12).endpoints
    assert endpoints is not None
    many = metadata(MANY_BROKERS)
    made: dict[str, Task] = {
        KLAMM: lambda: decode(body, frames.METADATA, 12, "response"),
        SPLICE: lambda: b"".join(rewrite(endpoints, body, 0, len(body), _stands_for) or ()),
        SPLICE_MANY: lambda: b"".join(rewrite(endpoints, many, 0, len(many), _stands_for) or ()),
    }
    absent = {}
    try:
        from kafka.protocol.metadata import MetadataResponse as KafkaPython

        versioned = KafkaPython[12]
        made[KAFKA_PYTHON] = lambda: versioned.decode(body)
    except ImportError as error:
        absent[KAFKA_PYTHON] = str(error)
    try:
        from kio.schema.metadata.v12.response import MetadataResponse as Kio
        from kio.serial import entity_reader

        reader = entity_reader(Kio)
        made[KIO] = lambda: reader(body, 0)
    except ImportError as error:
        absent[KIO] = str(error)
    _look(body, {name: task() for name, task in made.items()})
    return made, absent


def _stands_for(kind: str, node_id: int, host: str, port: int) -> tuple[str, int]:
    return "127.0.0.1", 19_093 + node_id


def _look(body: bytes, results: dict[str, Any]) -> None:
    """Have all read the same, and does the spliced body name klamm's addresses and differ in nothing else?"""
    read = results[KLAMM]
    seen = [(broker["node_id"], broker["host"], broker["port"]) for broker in read["brokers"]]
    for name, value in results.items():
        if name in (SPLICE, SPLICE_MANY):
            continue
        message = value[0] if name == KIO else value
        others = [(b.node_id, b.host, b.port) for b in message.brokers] if name != KLAMM else seen
        topics = len(read["topics"]) if name == KLAMM else len(message.topics)
        if others != seen or topics != TOPICS:
            raise AssertionError(f"{name} read something else: {others[:2]}, {topics} topics")
    spliced = decode(results[SPLICE], frames.METADATA, 12, "response")
    for broker in spliced["brokers"]:
        if (broker["host"], broker["port"]) != _stands_for("broker", broker["node_id"], "", 0):
            raise AssertionError(f"not rewritten: {broker}")
    if {**spliced, "brokers": read["brokers"]} != read:
        raise AssertionError("the rewrite changed more than the addresses")


def run(console: Console, quick: bool = False) -> dict[str, Any]:
    """Time all of them in turn, several rounds; the ratios are taken within each round."""
    body = metadata(BROKERS)
    made, absent = tasks(body)
    for name, reason in absent.items():
        console.print(f"not measured: {name}: {reason}", markup=False)
    rounds, seconds = (5, 0.05) if quick else (15, 0.15)
    timers = {name: timeit.Timer(task) for name, task in made.items()}
    counts = {name: max(1, int(seconds / timer.timeit(3) * 3)) for name, timer in timers.items()}
    times: dict[str, list[float]] = {name: [] for name in timers}
    gc.collect()
    for _ in range(rounds):
        for name, timer in timers.items():
            times[name].append(timer.timeit(counts[name]) / counts[name])
    rows = [_row(name, taken, times.get(KAFKA_PYTHON)) for name, taken in times.items()]
    console.print(_table(rows, len(body)))
    return {
        "body_bytes": len(body),
        "rounds": rounds,
        "python": sys.version.split()[0],
        "rows": rows,
        "absent": absent,
    }


def _row(name: str, taken: list[float], base: list[float] | None) -> dict[str, Any]:
    """Microseconds, and the share of kafka-python's time to read."""
    row: dict[str, Any] = {
        "name": name,
        "median_us": statistics.median(taken) * 1e6,
        "least_us": min(taken) * 1e6,
    }
    if base:
        ratios = [one / other for one, other in zip(taken, base, strict=True)]
        row |= {"ratio": statistics.median(ratios), "ratio_low": min(ratios), "ratio_high": max(ratios)}
        row["target"] = {KLAMM: DECODE_TARGET, SPLICE: SPLICE_TARGET}.get(name)
    return row


def _table(rows: list[dict[str, Any]], body_bytes: int) -> Table:
    table = Table(
        title=f"Metadata 12, {body_bytes:,} bytes: {BROKERS} brokers, {TOPICS * PARTITIONS} partitions"
    )
    for heading in ("", "median, us", "least, us", "x kafka-python's read", "at most"):
        table.add_column(heading, justify="left" if not heading else "right")
    for row in rows:
        target = row.get("target")
        met = target is None or row["ratio"] <= target
        ratio = (
            f"{row['ratio']:.4f} ({row['ratio_low']:.4f}-{row['ratio_high']:.4f})" if "ratio" in row else ""
        )
        table.add_row(
            row["name"], f"{row['median_us']:.1f}", f"{row['least_us']:.1f}",
            Text(ratio, style="" if target is None else "green" if met else "red"),
            f"{target:.4f}" if target else "",
        )  # fmt: skip
    return table
