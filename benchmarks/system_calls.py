"""Counts the system calls of proxies by perf, which does not slow them down: see `man perf-stat`."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.peer import Peer
from benchmarks.traffic import client
from benchmarks.traffic.workloads import LARGE_BYTES, Workload

EVENT = "raw_syscalls:sys_enter"
ENABLE = b"enable\n"
PERIOD_S = 0.1


class Uncounted(Exception):
    """System calls cannot be counted here; the text says why."""


def run(
    rows: list[Workload], peers: list[Peer], broker_pid: int, seconds: float, folder: Path
) -> list[dict[str, Any]]:
    """Calls by exchange, of each proxy, for each row but those of 100 MB. Raises Uncounted."""
    found = []
    for row in rows:
        if row.blobs.size_bytes == LARGE_BYTES:
            continue
        values = {
            peer.name: _calls(row, peer, peer.pid, broker_pid, seconds, folder) for peer in peers if peer.pid
        }
        shape = {"api": row.api, "size_bytes": row.blobs.size_bytes}
        found.append(shape | {"connections": row.connections, "in_flight": row.in_flight, "values": values})
    return found


def _calls(row: Workload, peer: Peer, pid: int, broker_pid: int, seconds: float, folder: Path) -> float:
    with counting(pid, folder) as counted:
        took = client.drive(row, peer.address, pid, broker_pid, seconds, peer.counters, peer.tls)
    return counted[0] / took.frames


@contextmanager
def counting(pid: int, folder: Path) -> Iterator[list[int]]:
    """The calls of a process, all its threads, within the context; at its end they are in the list."""
    perf = shutil.which("perf")
    if perf is None:
        raise Uncounted("perf is not installed (Debian package linux-perf)")
    counted: list[int] = []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        control, answer, told = (Path(name) / file for file in ("control", "answer", "told"))
        for pipe in (control, answer):
            os.mkfifo(pipe)
        words = [perf, "stat", "-x", ",", "-e", EVENT, "-p", str(pid), "-o", str(told)]
        words += ["-D", "-1", "--control", f"fifo:{control},{answer}"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            _enable(process, control, answer)
            yield counted
            process.send_signal(signal.SIGINT)
        counted.append(int(told.read_text().splitlines()[-1].partition(",")[0]))


def _enable(process: "subprocess.Popen[str]", control: Path, answer: Path) -> None:
    """Returns when perf counts."""
    with open(control, "r+b", 0) as orders, open(answer, "r+b", 0) as answers:
        orders.write(ENABLE)
        while not select.select([answers], [], [], PERIOD_S)[0]:
            if process.poll() is not None:
                raise Uncounted(f"perf ended: {process.communicate()[0].strip()}")
