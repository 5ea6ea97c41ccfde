"""Shared by the end-to-end tests: a namespace, real clusters, klamm in front of them; each starts once."""

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests import summary_lines
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace, namespace, need_namespaces
from tests.brokers.processes import started, wait_for
from tests.brokers.zookeeper import OldCluster, old_cluster
from tests.e2e import topics
from tests.e2e.conversation import ask, coordinator
from tests.e2e.klamm_process import Klamm, klamm_in_front_of
from tests.e2e.paths import LEADER, OTHER, QUORUM, TOPIC, Paths


@pytest.fixture(scope="session")
def inside() -> Iterator[Namespace]:
    """A network namespace where only klamm can be reached."""
    need_namespaces()
    with namespace() as made:
        yield made


@pytest.fixture(scope="session", params=["0.8.2.2", "0.10.1.1"])
def old_kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OldCluster]:
    """Two brokers of an old Kafka and their ZooKeeper."""
    with old_cluster(request.param, tmp_path_factory.mktemp(f"kafka-{request.param}"), (0, 1)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def klamm(kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Klamm]:
    """klamm in front of Kafka 4.4.0, with a log line for each exchange."""
    log = tmp_path_factory.mktemp("klamm") / "klamm.log"
    with klamm_in_front_of(kafka.bootstrap(), inside.host, log, "--log", "all") as running:
        yield running


@pytest.fixture(scope="session")
def paths(kafka: Cluster, klamm: Klamm) -> Paths:
    """The addresses of all endpoints, and a topic whose leader moved from OTHER to LEADER."""
    topics.create(kafka.bootstrap(), TOPIC, [[OTHER]])
    topics.move(kafka.bootstrap(), TOPIC, 0, [LEADER])
    wait_for(lambda: coordinator(kafka.address(1), 0, "any-group"), "the group coordinators")
    metadata = ask(klamm.address, "Metadata", 12, {"topics": [{"name": TOPIC}]})
    through = {("broker", node["node_id"]): (node["host"], node["port"]) for node in metadata["brokers"]}
    quorum = ask(klamm.address, "DescribeQuorum", 2, QUORUM)
    listener = quorum["nodes"][0]["listeners"][0]
    through["controller", 1] = listener["host"], listener["port"]
    direct = {("broker", node_id): kafka.address(node_id) for node_id in (1, 2, 3)}
    direct["controller", 1] = "127.0.0.1", kafka.controller_port
    return Paths(direct, through, metadata["topics"][0]["topic_id"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a klamm of the test's own logs to."""
    return tmp_path / "klamm.log"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the running brokers and klamm logged last where a test fails."""
    report = yield
    if report.failed:
        report.sections += [("log", process.tail(25)) for process in started if process.running]
    return report


_rewritten: list[str] = []


@pytest.fixture(scope="session")
def seen_rewritten() -> list[str]:
    """Lines that say which addresses were seen rewritten; they are printed when all tests are done."""
    return _rewritten


def _line() -> str | None:
    """The summary of the lines in `seen_rewritten`, printed when all tests are done."""
    if not _rewritten:
        return None
    return "\n".join(["addresses rewritten in responses of real brokers:", *_rewritten])


summary_lines.sources.append(_line)
