"""Prints what the tests have to tell, wherever they ran."""

from typing import Any

import pytest

from tests import told


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of pytest-xdist: hand it over."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["told"] = told.lines()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker has ended. One that crashed has told nothing."""
    told.elsewhere += getattr(node, "workeroutput", {}).get("told", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print it."""
    for line in [*told.lines(), *told.elsewhere]:
        terminalreporter.write_line(line)
