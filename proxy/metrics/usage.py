"""The resources that a process takes, by the names of Prometheus' own metrics of processes."""

from __future__ import annotations

import os
import resource
import time

STATM = "/proc/self/statm"  # pages: of the address space, then of memory


def usage(started_at: float) -> dict[str, float]:
    """Of this process; what the system does not tell is left out. With many open files it takes some
    milliseconds.
    """
    found = {
        "process_cpu_seconds_total": time.process_time(),
        "process_start_time_seconds": started_at,
        "process_max_fds": float(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    }
    try:
        with open(STATM) as file:
            pages = file.read().split()
        found["process_open_fds"] = float(len(os.listdir("/proc/self/fd")))
    except OSError:
        return found
    for name, count in zip(("virtual", "resident"), pages, strict=False):
        found[f"process_{name}_memory_bytes"] = float(int(count) * resource.getpagesize())
    return found
