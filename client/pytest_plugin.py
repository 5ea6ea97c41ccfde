"""pytest: the fixture `klamm`, which stands in front of the cluster at `kafka_bootstrap` (docs/testing.md).

pytest loads this file in every project that has klamm installed: what is heavy is imported when it is used.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from klamm.client.front import Front
    from klamm.client.process import Process

OPTION = "--klamm-bootstrap"
VARIABLE = "KLAMM_BOOTSTRAP"
NO_CLUSTER = (
    f"the fixture klamm needs a Kafka cluster to stand in front of: pytest {OPTION} HOST:PORT, or"
    f" {VARIABLE}=HOST:PORT in the environment, or a fixture kafka_bootstrap of yours that returns it"
)
LAST = 20  # exchanges in the report of a failed test
FRONT: pytest.StashKey[Front] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options for the cluster's address, and for the seed of chances."""
    group = parser.getgroup("klamm", "klamm: faults between Kafka clients and a cluster")
    group.addoption(
        OPTION, metavar="HOST:PORT[,...]", help=f"the cluster behind the fixture klamm [{VARIABLE}]"
    )
    group.addoption(
        "--klamm-seed", metavar="N", type=int, default=0, help="decides the chances of its rules [0]"
    )


@pytest.fixture(scope="session")
def kafka_bootstrap(pytestconfig: pytest.Config) -> str:
    """The address of the cluster: "host:port", several with commas. Define it anew, in any scope, to start
    one.
    """
    found = pytestconfig.getoption(OPTION) or os.environ.get(VARIABLE)
    if not found:
        pytest.fail(NO_CLUSTER, pytrace=False)
    return str(found)


@pytest.fixture(scope="session")
def klamm_options() -> Sequence[str]:
    """More options of `klamm run`, such as --upstream-tls. Define it anew to give some."""
    return ()


class Running:
    """The klamm of this session, or none yet. One at a time; another cluster takes another."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.process: Process | None = None

    def of(self, cluster: str, options: Sequence[str]) -> Process:
        from klamm.client.process import Process

        found = self.process
        if found is None or not found.running or (found.cluster, found.options) != (cluster, tuple(options)):
            self.stop()
            found = self.process = Process(cluster, options, self.seed)
        return found

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None


@pytest.fixture(scope="session")
def _klamm_running(pytestconfig: pytest.Config) -> Iterator[Running]:
    running = Running(pytestconfig.getoption("--klamm-seed"))
    yield running
    running.stop()


@pytest.fixture
def klamm(
    request: pytest.FixtureRequest,
    _klamm_running: Running,
    kafka_bootstrap: str,
    klamm_options: Sequence[str],
) -> Iterator[Front]:
    """klamm in front of the cluster. Clients connect to `klamm.bootstrap`; rules end with the test."""
    from klamm.client.front import Front
    from klamm.client.process import NotStarted

    why_not = ""
    try:
        process = _klamm_running.of(kafka_bootstrap, klamm_options)
    except NotStarted as reason:
        why_not = str(reason)
    if why_not:
        pytest.fail(why_not, pytrace=False)
    front = Front(process)
    request.node.stash[FRONT] = front
    yield front
    front.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: Any
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds klamm's report to the failure."""
    report = yield
    front = item.stash.get(FRONT, None)
    if front is not None and call.when == "call" and report.failed:
        text = "klamm has nothing to say: it does not answer"
        with suppress(Exception):  # the failure itself is worth more
            text = front.report(LAST)
        report.sections.append(("klamm", text))
    return report
