"""Processes of their own that keep a capture: one to be killed, one whose disk fails under it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from klamm.captures.captured import CapturedConnection
from klamm.captures.storage.keeper import Keeper
from klamm.captures.storage.scribe import Scribe
from klamm.captures.storage.segments import origin
from klamm.captures.storage.writing import Writer
from klamm.captures.streams.blanking import Keeping
from klamm.decoders import API
from klamm.decoders.headers import request_frame

HEARTBEAT = b"\0\7billing" + bytes(4) + b"\0\1m"  # version 0
PATIENCE_S = 60.0


def heartbeat(number: int) -> bytes:
    """A request, and so a row."""
    return request_frame(API["Heartbeat"], 0, number, "app", HEARTBEAT)


def keeper_in(folder: Path, messages: list[str] | None = None, queue_bytes: int = 1 << 20) -> Keeper:
    """Started, and with connection 1 open."""
    writer = Writer(folder, origin())
    lines = [] if messages is None else messages
    scribe = Scribe(writer, Keeping(), lambda kind, message: lines.append(f"{kind}: {message}"))
    keeper = Keeper(scribe, queue_bytes)
    keeper.start()
    keeper.opened(CapturedConnection(writer.origin.capture, 1, "main", "1", "10.0.0.7:50000"), time.time_ns())
    return keeper


def keep_until_killed(folder: Path) -> None:
    """A line for each request: its number, when it was given, and how long this process was kept waiting."""
    keeper, number, last_s, stalled_s = keeper_in(folder), 0, time.monotonic(), 0.0
    while True:
        keeper.chunk(1, "request", heartbeat(number), time.time_ns())
        now_s = time.monotonic()
        stalled_s = max(stalled_s, now_s - last_s)
        last_s = now_s
        print(number, now_s, stalled_s, flush=True)
        number += 1
        time.sleep(0.002)


def keep_while_the_disk_fails(folder: Path, how: str) -> None:
    """In a mount namespace of its own. Prints what came of it as JSON."""
    run("mount", "-t", "tmpfs", "-o", "size=1m", "none", folder)
    lines: list[str] = []
    keeper = keeper_in(folder, lines)
    number = send(keeper, 0, lambda: keeper.counters.rows > 100)
    if how == "full":
        ballast = folder / ".ballast"
        fill(ballast)
    else:
        for path in folder.iterdir():
            path.unlink()
        run("mount", "--bind", folder, folder)
        run("mount", "-o", "remount,bind,ro", folder)
    failures = keeper.counters.failures
    number = send(keeper, number, lambda: keeper.counters.failures >= failures + 2)
    during = asdict(keeper.counters)
    if how == "full":
        ballast.unlink()
    else:
        run("umount", folder)
    lost = keeper.counters.lost_frames
    rows = keeper.counters.rows
    number = send(keeper, number, lambda: keeper.counters.rows > rows + 100 and not keeper.counters.failing)
    sealed = keeper.stop(PATIENCE_S)
    from klamm.captures.storage.reading import read

    reading = read(folder)
    rows_read = list(reading)
    report = {
        "sealed": sealed,
        "sent": number,
        "during": during,
        "after": asdict(keeper.counters),
        "lost_before_recovery": lost,
        "frames": [row.correlation_id for row in rows_read if row.kind == "frame"],
        "lost": [[row.lost, row.text] for row in rows_read if row.kind == "lost"],
        "problems": reading.problems,
        "said": lines,
    }
    print(json.dumps(report))


def send(keeper: Keeper, number: int, until: Callable[[], bool]) -> int:
    """Requests from this number on, until that is so; the next number."""
    end_s = time.monotonic() + PATIENCE_S
    while not until():
        if time.monotonic() > end_s:
            raise TimeoutError(f"{keeper.counters}")
        keeper.chunk(1, "request", heartbeat(number), time.time_ns())
        number += 1
        time.sleep(0.001)
    return number


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue


def run(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    what, where = sys.argv[1], Path(sys.argv[2])
    if what == "killed":
        keep_until_killed(where)
    else:
        keep_while_the_disk_fails(where, what)
