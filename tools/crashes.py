"""A plugin for pytest: a test in which a worker of pytest-xdist crashed counts as failed.

pytest-xdist gives the test to another worker. If it passes there, --last-failed does not know of the crash.
"""

from typing import Any

import pytest

CRASHED = pytest.StashKey[set[str]]()
LAST_FAILED = "cache/lastfailed"  # where --last-failed looks


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, sched: Any) -> None:
    """Remember the test."""
    sched.config.stash.setdefault(CRASHED, set()).add(crashitem)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add the tests to those that have failed."""
    crashed = session.config.stash.get(CRASHED, set())
    cache = session.config.cache
    if crashed and cache is not None:
        cache.set(LAST_FAILED, {**cache.get(LAST_FAILED, {}), **dict.fromkeys(crashed, True)})
