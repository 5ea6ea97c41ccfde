"""A plugin for pytest: the files whose tests took the most processor time, their ended children included.

A process that several files share, such as a cluster, counts for the file in which it ends.
"""

import os
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

MOST = 25
KEY = "processor_time"  # of what a worker of pytest-xdist gives to the main process
SPENT = pytest.StashKey[defaultdict[str, float]]()  # seconds, by file


def _spent(config: pytest.Config) -> defaultdict[str, float]:
    return config.stash.setdefault(SPENT, defaultdict(float))


def _now() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count one test, with the fixtures that begin and end with it."""
    began = _now()
    try:
        return (yield)
    finally:
        _spent(item.config)[item.nodeid.partition("::")[0]] += _now() - began


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[KEY] = dict(_spent(session.config))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker has ended; one that crashed gives nothing."""
    for file, seconds in getattr(node, "workeroutput", {}).get(KEY, {}).items():
        _spent(node.config)[file] += seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print a line for each file."""
    spent = _spent(config)
    terminalreporter.write_sep("=", f"processor time of {MOST} files, of {sum(spent.values()):.0f} s")
    for file in sorted(spent, key=spent.__getitem__, reverse=True)[:MOST]:
        terminalreporter.write_line(f"{spent[file]:6.0f} s  {file}")
