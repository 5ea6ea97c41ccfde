"""`klamm show --stats` beside tshark: the same exchanges, from the page cache, in CPU time."""

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmarks.traffic import show_traffic
from benchmarks.traffic.show_traffic import PROGRAM, Shape, Traffic

HEADERS, WHOLE = "klamm show --stats --headers", "klamm show --stats"
KLAMMS = (HEADERS, WHOLE)
AGAIN = """
import sys, time
from klamm.cli import main
main(sys.argv[1:])
before = time.process_time()
main(sys.argv[1:])
print(time.process_time() - before, file=sys.stderr)
"""
SUMMARY, FIELDS = "tshark -q -z io,phs", "tshark -T fields"
TSHARKS = (SUMMARY, FIELDS)
ROUNDS = 3
TARGET = 200.0  # MB/s, of HEADERS without its start
LEAST_S = 1e-3
FEW = 4  # exchanges: what they take is the start of a command
CORRELATION_ID = "kafka.correlation_id"
SHOWN = "frame.time_epoch kafka.request_key kafka.request.version kafka.response_key kafka.len".split()

Seconds = dict[str, float]  # by command
Taken = dict[str, Seconds]  # "whole" and "without_start"


def _tshark(of: Traffic, *options: str) -> list[str]:
    return ["tshark", "-n", "-r", str(of.packets), *options]


def _fields(of: Traffic, *names: str) -> list[str]:
    return _tshark(of, "-T", "fields", *(word for name in names for word in ("-e", name)))


COMMANDS: dict[str, Callable[[Traffic], list[str]]] = {
    HEADERS: lambda of: [str(PROGRAM), "show", str(of.capture), "--stats", "--headers"],
    WHOLE: lambda of: [str(PROGRAM), "show", str(of.capture), "--stats"],
    SUMMARY: lambda of: _tshark(of, "-q", "-z", "io,phs"),
    FIELDS: lambda of: _fields(of, *SHOWN, CORRELATION_ID),
}


def run(console: Console, rounds: int = ROUNDS, quick: bool = False) -> dict[str, Any]:
    """Each command on each shape in turn, `rounds` times; ratios are taken within a round."""
    names = list(COMMANDS)
    absent = {}
    if shutil.which("tshark") is None:
        absent["tshark"] = "not installed (Debian package tshark): no ratio is given"
        console.print(f"not measured: tshark: {absent['tshark']}", markup=False)
        names = [name for name in names if name not in TSHARKS]
    with tempfile.TemporaryDirectory(prefix="klamm-bench-") as folder:
        few = show_traffic.write(show_traffic.SHAPES[0], FEW, Path(folder, "few"))
        starts = [{name: _cpu_s(COMMANDS[name](few)) for name in names} for _ in range(2 * rounds)]
        start_s = {name: statistics.median(one[name] for one in starts) for name in names}
        rows = []
        for shape in show_traffic.SHAPES:
            exchanges = shape.exchanges // (10 if quick else 1)
            traffic = show_traffic.write(shape, exchanges, Path(folder, shape.name.replace(" ", "-")))
            _check(traffic, names)
            taken = [_taken(traffic, start_s) for _ in range(rounds)]
            rows.append(_row(shape, traffic, taken))
            shutil.rmtree(traffic.capture.parent)
    console.print(_table(rows, start_s))
    return {"rounds": rounds, "start_s": start_s, "target": TARGET, "rows": rows, "absent": absent}


def _taken(traffic: Traffic, start_s: Seconds) -> Taken:
    """One round. Of klamm, what it does in a process that has done it once; of tshark, less its start."""
    whole = {name: _cpu_s(COMMANDS[name](traffic)) for name in start_s}
    working = {name: _again_s(COMMANDS[name](traffic)) for name in start_s if name in KLAMMS}
    working |= {name: max(whole[name] - start_s[name], LEAST_S) for name in start_s if name in TSHARKS}
    return {"whole": whole, "without_start": working}


def _cpu_s(command: list[str]) -> float:
    """User and system time of its process."""
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _again_s(command: list[str]) -> float:
    """The same of a command of klamm, the second time in one process."""
    words = [sys.executable, "-c", AGAIN, *command[1:]]
    done = subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return float(done.stderr)


def _check(traffic: Traffic, names: list[str]) -> None:
    """Do they read all of it? That warms the cache, too."""
    frames = {}
    told = json.loads(_output([*COMMANDS[HEADERS](traffic), "--json"]))
    frames[HEADERS] = sum(api["requests"] + api["responses"] for api in told["apis"])
    if FIELDS in names:
        frames[FIELDS] = sum(
            len(line.split(",")) for line in _output(_fields(traffic, CORRELATION_ID)).split()
        )
    if set(frames.values()) != {2 * traffic.exchanges}:
        raise AssertionError(f"of {2 * traffic.exchanges} frames are read: {frames}")


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _row(shape: Shape, traffic: Traffic, taken: list[Taken]) -> dict[str, Any]:
    """MB/s of traffic and one core, and how many times as fast as each tshark klamm is that reads headers."""
    mb = traffic.size_bytes / 1e6
    row: dict[str, Any] = {"name": shape.name, "frames": 2 * traffic.exchanges, "bytes": traffic.size_bytes}
    for kind in taken[0]:
        rounds = [one[kind] for one in taken]
        row[kind] = {
            "cpu_s": {name: statistics.median(one[name] for one in rounds) for name in rounds[0]},
            "mb_per_s": {name: mb / statistics.median(one[name] for one in rounds) for name in rounds[0]},
            "ratio": {
                name: statistics.median(one[name] / one[HEADERS] for one in rounds)
                for name in TSHARKS
                if name in rounds[0]
            },
        }
    return row


def _table(rows: list[dict[str, Any]], start_s: Seconds) -> Table:
    table = Table(title=f"MB/s of one core, and how many times as fast {HEADERS!r} is")
    for heading in ("frames", "", *start_s):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("", "start, CPU s", *(f"{seconds:.2f}" for seconds in start_s.values()))
    for row in rows:
        for kind, words in (("without_start", "without its start"), ("whole", "whole command")):
            speeds, ratios = row[kind]["mb_per_s"], row[kind]["ratio"]
            cells: list[str | Text] = []
            for name, speed in speeds.items():
                cell = Text(f"{speed:.3g}")
                if name == HEADERS and kind == "without_start":
                    met = speed >= TARGET
                    cell.append(f" {'>=' if met else 'not >='} {TARGET:.0f}", style="green" if met else "red")
                if name in ratios:
                    cell.append(f"  {ratios[name]:.1f}x", style="bold")
                cells.append(cell)
            table.add_row(row["name"], words, *cells)
    return table
