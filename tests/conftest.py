"""A real cluster for all who only use it; and what the tests have to tell is printed, wherever they ran."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import told
from tests.brokers.kraft import Cluster, kraft_cluster

PIPELINE = Path(__file__).resolve().parent / "pipeline"
LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")


@pytest.fixture(scope="session", autouse=True)
def _state_of_no_other_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What klamm remembers over a restart stays within the test run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Kafka 4.3.1: three brokers, of which node 1 is the controller too."""
    with kraft_cluster(
        tmp_path_factory.mktemp("kafka-4.3.1"), listeners=LISTENERS, hosts={2: "localhost"}
    ) as cluster:
        yield cluster


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """The pipeline's tests come first: those with brokers want the machine for themselves, the others take
    longest.
    """
    sharing = {item.path for item in items if "spark" in item.fixturenames}
    items.sort(key=lambda item: (PIPELINE not in item.path.parents, item.path not in sharing))


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
