"""Records of klamm and of kafka-python, iterated; CRC-32C verified on both sides."""

import gc
import statistics
import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table

from klamm.decoders.records import Batch, Record, batches, records, write

COUNT, SIZE = 1_000, 100
NOW_MS = 1_700_000_000_000
KLAMM, KAFKA_PYTHON, PURE = "klamm", "kafka-python 3", "kafka-python 3, CRC in Python"
TARGET = 3.0

Task = Callable[[], int]


def field(codec: str = "none") -> bytes:
    """A records field of one batch."""
    return write(
        Batch(codec=codec), [Record(i, NOW_MS + i, None, bytes([i & 0x7F]) * SIZE) for i in range(COUNT)]
    )


def tasks(data: bytes) -> tuple[dict[str, Task], dict[str, str]]:
    """The timed functions, by name, each tried once here; and those that cannot run, with the reason."""

    def klamm() -> int:
        total = 0
        for batch in batches(data):
            assert batch.crc_ok
            for record in records(batch):
                total += len(record.value or b"")
        return total

    made: dict[str, Task] = {KLAMM: klamm}
    absent = {}
    try:
        from kafka.record import MemoryRecords, util

        def kafka_python() -> int:
            total = 0
            for batch in MemoryRecords(data):
                assert batch.validate_crc()
                for record in batch:
                    total += len(record.value)
            return total

        def pure() -> int:
            # The checksum that kafka-python takes where the package crc32c is not installed.
            total = 0
            for batch in MemoryRecords(data):
                assert util.crc32c_py(memoryview(data)[21:]) == batch.crc
                for record in batch:
                    total += len(record.value)
            return total

        made |= {KAFKA_PYTHON: kafka_python, PURE: pure}
    except ImportError as error:
        absent = {KAFKA_PYTHON: str(error), PURE: str(error)}
    for name, task in made.items():
        if task() != COUNT * SIZE:
            raise AssertionError(f"{name} read something else")
    return made, absent


def run(console: Console, quick: bool = False) -> dict[str, Any]:
    """Time all of them in turn, several rounds, in CPU time; the ratios are taken within each round."""
    data = field()
    made, absent = tasks(data)
    for name, reason in absent.items():
        console.print(f"not measured: {name}: {reason}", markup=False)
    times: dict[str, list[float]] = {name: [] for name in made}
    for _ in range(7 if quick else 21):
        for name, task in made.items():
            times[name].append(_seconds(task, 3 if quick else 10))
    rows = [_row(name, taken, times[KLAMM]) for name, taken in times.items()]
    table = Table(title=f"one batch of {COUNT:,} records of {SIZE} bytes, no codec, CRC-32C verified")
    for heading in ("", "median, us", "ns a record", "x klamm's time", "at least"):
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        ratio = f"{row['ratio']:.2f} ({row['ratio_low']:.2f}-{row['ratio_high']:.2f})"
        target = "" if row["target"] is None else f"{row['target']:.1f}"
        table.add_row(
            row["name"], f"{row['median_us']:.0f}", f"{row['median_us'] * 1e3 / COUNT:.0f}", ratio, target
        )
    console.print(table)
    return {"bytes": len(data), "records": COUNT, "rows": rows, "absent": absent}


def _seconds(task: Task, times: int) -> float:
    gc.collect()
    begun = time.process_time()
    for _ in range(times):
        task()
    return (time.process_time() - begun) / times


def _row(name: str, taken: list[float], ours: list[float]) -> dict[str, Any]:
    """Microseconds, and how many times klamm's time it is."""
    ratios = [other / own for other, own in zip(taken, ours, strict=True)]
    return {
        "name": name,
        "median_us": statistics.median(taken) * 1e6,
        "least_us": min(taken) * 1e6,
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "target": TARGET if name == KAFKA_PYTHON else None,
    }
