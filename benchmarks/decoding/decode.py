"""Bodies of five APIs read by klamm and others, records, addresses replaced, and what starting costs."""

import gc
import statistics
import sys
import time
import timeit
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.decoding import decode_bodies, decode_costs, decode_rewrite
from benchmarks.decoding.decode_bodies import KAFKA_PYTHON, KIO, KLAMM, PICK, Case, Task
from benchmarks.traffic import records

TARGETS = {KAFKA_PYTHON: 3.0, KIO: 0.7, PICK: 5.0}
ALL = "all of these"
METADATA = "Metadata 12 response"

Times = dict[str, list[float]]


def run(console: Console, quick: bool = False) -> dict[str, Any]:
    """Time all of them in turn, several rounds, in CPU time; the ratios are taken within each round."""
    cases, absent = decode_bodies.cases()
    for name, reason in absent.items():
        console.print(f"not measured: {name}: {reason}", markup=False)
    rounds, seconds = (5, 0.02) if quick else (15, 0.05)
    times = {str(case): _timed(case.tasks, rounds, seconds) for case in cases}
    times[ALL] = _summed(list(times.values()))
    rows = [_row(name, taken) for name, taken in times.items()]
    console.print(_table(rows, {str(case): case for case in cases}))
    splices = _timed(decode_rewrite.tasks(), rounds, seconds)
    rewrites = [
        _rewrite_row(name, taken, times[METADATA].get(KAFKA_PYTHON)) for name, taken in splices.items()
    ]
    for row in rewrites:
        share = f", {row['ratio']:.4f} of {KAFKA_PYTHON}'s read" if "ratio" in row else ""
        console.print(f"{row['name']}: {row['median_us']:.1f} us{share}", markup=False)
    starting = decode_costs.measured(rounds)
    console.print(f"import of klamm.decoders: {starting['import_ms']:.0f} ms", markup=False)
    for most in starting["compile"]:
        console.print(f"longest to make, {most['goal']}: {most['layout']}, {most['ms']:.2f} ms", markup=False)
    return {
        "rounds": rounds,
        "python": sys.version.split()[0],
        "targets": TARGETS,
        "rows": rows,
        "rewrite": rewrites,
        "starting": starting,
        "records": records.run(console, quick),
        "absent": absent,
    }


def _timed(tasks: dict[str, Task], rounds: int, seconds: float) -> Times:
    """Seconds per call, one for each round."""
    timers = {name: timeit.Timer(task, timer=time.process_time) for name, task in tasks.items()}
    counts = {name: timer.autorange()[0] for name, timer in timers.items()}
    speed = {name: timers[name].timeit(counts[name]) / counts[name] for name in timers}
    times: Times = {name: [] for name in timers}
    gc.collect()
    for _ in range(rounds):
        for name, timer in timers.items():
            number = max(1, int(seconds / speed[name]))
            times[name].append(timer.timeit(number) / number)
    return times


def _summed(all_times: list[Times]) -> Times:
    """One of each, read one after the other; without picks, since metering takes none from some."""
    names = [name for name in (KLAMM, KAFKA_PYTHON, KIO) if name in all_times[0]]
    return {name: [sum(one) for one in zip(*(t[name] for t in all_times), strict=True)] for name in names}


def _row(name: str, times: Times) -> dict[str, Any]:
    """Microseconds, and for each of the others how many times klamm's time it is; for pick, how many times
    a pick the full read is.
    """
    row: dict[str, Any] = {"name": name, "median_us": {}, "least_us": {}, "ratio": {}}
    for reader, taken in times.items():
        row["median_us"][reader] = statistics.median(taken) * 1e6
        row["least_us"][reader] = min(taken) * 1e6
        ratios = [other / own for other, own in zip(taken, times[KLAMM], strict=True)]
        if reader == PICK:
            row["ratio"][reader] = statistics.median(1 / ratio for ratio in ratios)
        elif reader != KLAMM:
            row["ratio"][reader] = statistics.median(ratios)
    return row


def _rewrite_row(name: str, taken: list[float], base: list[float] | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": name,
        "median_us": statistics.median(taken) * 1e6,
        "least_us": min(taken) * 1e6,
    }
    if base:
        row["ratio"] = statistics.median(taken) / statistics.median(base)
        row["target"] = decode_rewrite.TARGET
    return row


def _table(rows: list[dict[str, Any]], cases: dict[str, Case]) -> Table:
    table = Table(title="whole bodies read, median us, and how many times klamm's time that is")
    headings = ["", "bytes", KLAMM, KAFKA_PYTHON, f"/ {KLAMM}", KIO, f"/ {KLAMM}", PICK, "full / pick"]
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    for row in rows:
        case = cases.get(row["name"])
        cells: list[str | Text] = [row["name"], f"{len(case.body):,}" if case else ""]
        for reader in (KLAMM, KAFKA_PYTHON, KIO, PICK):
            us, ratio = row["median_us"].get(reader), row["ratio"].get(reader)
            cells.append("" if us is None else f"{us:.1f}")
            if reader != KLAMM:
                met = ratio is not None and ratio >= TARGETS[reader]
                cells.append(Text("" if ratio is None else f"{ratio:.2f}", style="green" if met else "red"))
        table.add_row(*cells)
    at_least = [f"{TARGETS[reader]:.1f}" for reader in (KAFKA_PYTHON, KIO, PICK)]
    table.add_row("at least", "", "", "", at_least[0], "", at_least[1], "", at_least[2])
    return table
