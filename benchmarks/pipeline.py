"""Captures into the table `exchanges` on Spark: beside tshark on the same exchanges, and as captures grow.

CPU time is that of all processes: Spark's JVM, its Python workers, tshark. Startup is apart: a session is
warmed with a small capture, each query is run some times before it is measured, the JVM's compilers (which go
on for minutes) are not counted, and rates are what a larger capture takes more than a smaller one.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from subprocess import DEVNULL
from subprocess import run as call
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.traffic import show_traffic
from benchmarks.traffic.show_traffic import Shape, Traffic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIX = (200,) * 70 + (1024,) * 20 + (16 * 1024,) * 9 + (1024 * 1024,)  # bytes of records, in turn
SHAPES = (Shape("200 B", (200,), 200_000), Shape("1 KB", (1024,), 100_000), Shape("mix", MIX, 60_000))
SIZES_MB = (100, 300, 1000)
WARM = Shape("warm", (200, 1024), 2_000)
TICKS = os.sysconf("SC_CLK_TCK")
TSHARK = {
    "tshark -T fields": (
        "-T",
        "fields",
        "-e",
        "kafka.request_key",
        "-e",
        "kafka.request.version",
        "-e",
        "kafka.correlation_id",
    ),
    "tshark -T ek": ("-T", "ek", "-J", "kafka"),
}
HEADERS = (
    "connection", "exchange", "client_id", "time", "api", "version", "correlation_id", "request_bytes",
    "response_bytes", "answered", "latency_ms",
)  # fmt: skip
BESIDE = {
    "headers": "tshark -T fields",
    "bodies off": "tshark -T fields",
    "bodies as VARIANT": "tshark -T ek",
}
TARGET = 10.0
WARM_ROUNDS, ROUNDS, TSHARK_ROUNDS, SIZE_ROUNDS = 3, 5, 2, 6
COMPILERS = ("C1 CompilerThre", "C2 CompilerThre")  # threads of the JVM
JVM = "-XX:-UseDynamicNumberOfCompilerThreads"  # one that ended would be counted


def run(console: Console, quick: bool = False) -> dict[str, Any]:
    """The rows of both measurements."""
    from klamm.pipeline.spark import session

    settings = {"spark.sql.shuffle.partitions": "4", "spark.driver.memory": "4g"}
    spark = session("local[2]", **settings, **{"spark.driver.extraJavaOptions": JVM})
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as folder:
        warm = show_traffic.write(WARM, WARM.exchanges, Path(folder, "warm"))
        for what in BESIDE:
            _exchanges(spark, warm, what)
        speeds = [_speed(spark, shape, Path(folder), quick) for shape in SHAPES]
        sizes = _sized(spark, [mb // (10 if quick else 1) for mb in SIZES_MB], Path(folder))
    spark.stop()
    console.print(_speeds(speeds))
    console.print(_sizes(sizes))
    return {"mix": "70% 200 B, 20% 1 KB, 9% 16 KB, 1% 1 MB", "speeds": speeds, "sizes": sizes}


def _speed(spark: SparkSession, shape: Shape, folder: Path, quick: bool) -> dict[str, Any]:
    """Exchanges in a second of one core: by what the second half of them took more."""
    counts = [shape.exchanges // (20 if quick else 2), shape.exchanges // (10 if quick else 1)]
    name = shape.name.replace(" ", "-")
    some, whole = [show_traffic.write(shape, count, folder / f"{name}-{count}") for count in counts]
    works: dict[str, Callable[[Traffic], float]] = {
        what: partial(_spark_cpu, spark, partial(_exchanges, spark, what=what)) for what in BESIDE
    }
    for name, options in TSHARK.items() if shutil.which("tshark") else ():
        works[name] = partial(_tshark_cpu, options)
    rates = {}
    for name, work in works.items():
        is_tshark = name in TSHARK
        for _ in range(0 if is_tshark else WARM_ROUNDS):
            work(whole)
        more_s = [work(whole) - work(some) for _ in range(TSHARK_ROUNDS if is_tshark else ROUNDS)]
        rates[name] = (counts[1] - counts[0]) / statistics.median(more_s)
    for traffic in (some, whole):
        shutil.rmtree(traffic.capture.parent)
    ratios = {ours: rates[ours] / rates[theirs] for ours, theirs in BESIDE.items() if theirs in rates}
    return {
        "name": shape.name,
        "exchanges": counts[1],
        "bytes": whole.size_bytes,
        "per_core_s": rates,
        "ratio": ratios,
    }


def _exchanges(spark: SparkSession, traffic: Traffic, what: str) -> None:
    from klamm.pipeline.tables import Tables

    tables = Tables(spark, str(traffic.capture), bodies=what == "bodies as VARIANT")
    table = tables.some_exchanges(*HEADERS) if what == "headers" else tables.exchanges
    table.write.format("noop").mode("overwrite").save()


def _spark_cpu(spark: SparkSession, work: Callable[[Traffic], None], traffic: Traffic) -> float:
    root = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    before = _tree_s(root)
    work(traffic)
    return _tree_s(root) - before


def _stat(of: Path) -> tuple[str, list[str]]:
    """The name of a process or thread, and the fields behind it, as proc(5) has them from `state` on."""
    name, _, fields = (of / "stat").read_text().partition("(")[2].rpartition(")")
    return name, fields.split()


def _compilers_ticks(process: Path) -> int:
    """CPU time of the JVM's compilers, if it is one."""
    if _stat(process)[0] != "java":
        return 0
    ticks = 0
    for thread in (process / "task").iterdir():
        with suppress(OSError):  # it has ended, so it was no compiler
            name, fields = _stat(thread)
            ticks += sum(map(int, fields[11:13])) if name in COMPILERS else 0
    return ticks


def _tree_s(root: int) -> float:
    """CPU time of a process and all that it has started, those that ended and were waited for included."""
    parents: dict[int, int] = {}
    taken: dict[int, float] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                _, fields = _stat(Path(entry.path))
                compilers = _compilers_ticks(Path(entry.path))
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            taken[int(entry.name)] = (sum(map(int, fields[11:15])) - compilers) / TICKS
    total = 0.0
    for pid, seconds in taken.items():
        above = pid
        while above not in (0, 1, root):
            above = parents.get(above, 0)
        total += seconds if above == root else 0.0
    return total


def _tshark_cpu(options: tuple[str, ...], traffic: Traffic) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    call(["tshark", "-n", "-r", str(traffic.packets), *options], check=True, stdout=DEVNULL, stderr=DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _sized(spark: SparkSession, sizes_mb: list[int], folder: Path) -> list[dict[str, Any]]:
    """The mix, in one segment after the other of 64 MB, as a capture has them; by turns: Java gets faster."""
    from klamm.pipeline.tables import Tables

    captures = [folder / f"{mb}-MB" for mb in sizes_mb]
    written = [
        show_traffic.segments(Shape("mix", MIX, 0), mb * 1_000_000, capture)
        for mb, capture in zip(sizes_mb, captures, strict=True)
    ]
    seconds: list[list[float]] = [[] for _ in captures]
    for _ in range(SIZE_ROUNDS + 1):
        for capture, of_capture in zip(captures, seconds, strict=True):
            begun = time.monotonic()
            Tables(spark, str(capture)).exchanges.write.format("noop").mode("overwrite").save()
            of_capture.append(time.monotonic() - begun)
    return [
        {"bytes": one.size_bytes, "exchanges": one.exchanges, "s": statistics.median(of_capture[1:])}
        for one, of_capture in zip(written, seconds, strict=True)
    ]


def _speeds(rows: list[dict[str, Any]]) -> Table:
    table = Table(title=f"exchanges in a second of one core; times tshark (target {TARGET:.0f}x)")
    names = list(rows[0]["per_core_s"])
    for heading in ("records", *names):
        table.add_column(heading, justify="right")
    for row in rows:
        cells = [
            f"{rate:,.0f}" + (f"  {row['ratio'][name]:.1f}x" if name in row["ratio"] else "")
            for name, rate in row["per_core_s"].items()
        ]
        table.add_row(row["name"], *cells)
    return table


def _sizes(rows: list[dict[str, Any]]) -> Table:
    table = Table(title="exchanges with bodies, local[2]")
    for heading in ("MB", "exchanges", "s", "s per 100 MB", "times the first"):
        table.add_column(heading, justify="right")
    first = rows[0]["s"] / rows[0]["bytes"]
    for row in rows:
        mb, per = row["bytes"] / 1e6, row["s"] / row["bytes"]
        table.add_row(
            f"{mb:.0f}", f"{row['exchanges']:,}", f"{row['s']:.1f}", f"{per * 1e8:.1f}", f"{per / first:.2f}"
        )
    return table
