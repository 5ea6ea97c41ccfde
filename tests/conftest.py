"""The cluster that tests share, the processes that they run in, and the printing of their summaries."""

import signal
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests import sampling, summary_lines
from tests.brokers.kraft import Cluster, kraft_cluster

# Files that share what takes long to start. Each room runs in one worker of pytest-xdist; they begin in this
# order, the longest first. Rooms with a cluster are few: a worker that runs one starts the cluster once. A
# file belongs to the first room that names it; a file that none names is a room of its own.
ROOMS = {
    "brokers": (
        "tests/e2e/captures/*",
        "tests/e2e/clusters/test_[ad]*.py",
        "tests/e2e/clusters/test_handover.py",
        "tests/e2e/clusters/test_old*.py",
        "tests/e2e/clusters/test_reload.py",
        "tests/e2e/clusters/test_socket_activation.py",
        "tests/e2e/commands/*",
        "tests/e2e/contracts/*",
        "tests/e2e/test_clients.py",
        "tests/e2e/test_large_fetch.py",
        "tests/e2e/test_prometheus.py",
        "tests/e2e/test_s*.py",
        "tests/e2e/workers/*",
    ),
    "faults": (
        "tests/decoders/test_records_oracle.py",
        "tests/e2e/clusters/test_restart.py",
        "tests/e2e/clusters/test_two*.py",
        "tests/e2e/reactions/*",
        "tests/e2e/test_fixture.py",
        "tests/e2e/test_listen*.py",
        "tests/e2e/test_names.py",
        "tests/e2e/test_proxy_protocol.py",
        "tests/e2e/test_traces.py",
        "tests/scenarios/test_clients.py",
        "tests/strangers/*",
    ),
    "web": ("tests/e2e/web/*", "tests/e2e/test_dashboards.py"),
    "simulation": ("tests/simulation/*",),
    "pages": ("tests/docs/test_commands.py", "tests/docs/test_python.py"),
    "spark": ("tests/pipeline/*",),
    "own sessions": ("tests/e2e/clusters/test_own_sessions.py", "tests/e2e/clusters/test_readiness.py"),
    "kerberos": ("tests/e2e/clusters/test_kerberos.py",),
    "failover": ("tests/e2e/clusters/test_failover.py",),
    "transparent": ("tests/e2e/test_transparent.py",),
}
LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")

settings.register_profile("untimed", deadline=None)  # a busy machine is no failure
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _state_of_no_other_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """klamm's state over a restart stays within the test run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATE_DIRECTORY", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Kafka 4.4.0: three brokers, of which node 1 is the controller too."""
    with kraft_cluster(
        tmp_path_factory.mktemp("kafka"), listeners=LISTENERS, hosts={2: "localhost"}
    ) as cluster:
        yield cluster


def pytest_configure() -> None:
    """Where the tests run in the background, a shell lets them ignore Ctrl-C; their children must not."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"sample: {sampling.text()}" if sampling.text() else "sample: all cases"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Function]) -> None:
    """The rooms come first, in their order: they take longest. Of sampled tests some cases stay."""
    unwanted = set(sampling.left_out(items))
    if unwanted:
        config.hook.pytest_deselected(items=list(unwanted))
        items[:] = [item for item in items if item not in unwanted]
    order = {room: number for number, room in enumerate(ROOMS)}
    items.sort(key=lambda item: order.get(room_of(item.nodeid), len(order)))
    for item in items:
        if "played" in item.fixturenames:
            item.add_marker(pytest.mark.alone)


def room_of(nodeid: str) -> str:
    """The room of a test."""
    return _room_of_file(nodeid.partition("::")[0])


@cache
def _room_of_file(path: str) -> str:
    return next((room for room, files in ROOMS.items() if any(fnmatch(path, file) for file in files)), path)


class Rooms(LoadScopeScheduling):
    """Gives each worker of pytest-xdist one room after another."""

    def _split_scope(self, nodeid: str) -> str:
        return room_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Rooms:
    return Rooms(config, log)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of pytest-xdist: give the lines to the main process."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["summary_lines"] = summary_lines.lines()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker has ended. One that crashed gives no lines."""
    summary_lines.elsewhere += getattr(node, "workeroutput", {}).get("summary_lines", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the lines."""
    for line in [*summary_lines.lines(), *summary_lines.elsewhere]:
        terminalreporter.write_line(line)
