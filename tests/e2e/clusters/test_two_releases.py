"""The release of Kafka before the newest, which all other tests use: its broker, and its Java client."""

import subprocess
from collections.abc import Iterator

import pytest

from klamm.decoders import API
from tests.brokers.jars import compiled, java
from tests.brokers.kraft import OLDER, VERSION, Cluster, kraft_cluster
from tests.brokers.namespace import Namespace
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT = 100
ALONE = {
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker, controller too."""
    folder = tmp_path_factory.mktemp(f"kafka-{OLDER}")
    with kraft_cluster(folder, (1,), settings=ALONE, version=OLDER) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def older_klamm(
    older: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Klamm]:
    """klamm in front of it."""
    log = tmp_path_factory.mktemp("klamm-older") / "klamm.log"
    with klamm_in_front_of(older.bootstrap(), inside.host, log) as klamm:
        yield klamm


def _features(bootstrap: str, *prefix: str) -> str:
    sources = programs.FOLDER / "java"
    classes = compiled(VERSION, sources, sources / "kafka_4")
    command = java(VERSION, "DescribeFeatures", bootstrap, options=programs.QUIET, classes=classes)
    done = subprocess.run([*prefix, *command], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def _offered(address: tuple[str, int]) -> dict[int, int]:
    rows = ask(address, "ApiVersions", 0, {})["api_keys"]
    return {row["api_key"]: row["max_version"] for row in rows}


@pytest.mark.parametrize("which", ["kafka", "older"])
def test_an_admin_client_describes_the_features_of_brokers(
    which: str, request: pytest.FixtureRequest, inside: Namespace
) -> None:
    """Of the newest release: it asks with ApiVersions 5 first."""
    cluster: Cluster = request.getfixturevalue(which)
    klamm: Klamm = request.getfixturevalue("klamm" if which == "kafka" else "older_klamm")
    features = _features(klamm.bootstrap, *inside.command())
    offered = _offered(klamm.address)[18]
    assert "metadata.version" in features
    assert features == _features(cluster.bootstrap())
    assert offered == min(API["ApiVersions"].versions.last, _offered(cluster.address(1))[18])


@pytest.mark.parametrize("client", ["java", f"java-{OLDER}", "librdkafka"])
def test_a_client_produces_and_consumes_on_an_older_broker(
    client: str, older: Cluster, older_klamm: Klamm, inside: Namespace
) -> None:
    topics.create(older.bootstrap(), client, [[1]])
    actions = [
        {"do": "produce", "topic": client, "count": COUNT, "idempotent": True},
        {"do": "consume", "topic": client, "group": f"classic-{client}", "count": COUNT},
        {
            "do": "consume",
            "topic": client,
            "group": f"new-{client}",
            "protocol": "consumer",
            "count": COUNT,
        },
    ]
    produced, *consumed = programs.results(
        inside.run(*programs.command(client, older_klamm.bootstrap, *actions))
    )
    assert produced["acknowledged"] == COUNT
    wanted = records.digest(records.expected(client, "seed", range(COUNT)))
    assert [each["digest"] for each in consumed] == [wanted] * 2


def test_a_client_of_the_older_release_works_with_newer_brokers(
    kafka: Cluster, klamm: Klamm, inside: Namespace
) -> None:
    topic = f"newer-{OLDER}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    actions = [
        {"do": "produce", "topic": topic, "count": COUNT, "transactional_id": topic},
        {"do": "consume", "topic": topic, "group": topic, "count": COUNT, "isolation": "read_committed"},
    ]
    command = programs.command(f"java-{OLDER}", klamm.bootstrap, *actions)
    produced, consumed = programs.results(inside.run(*command))
    assert produced["acknowledged"] == COUNT
    assert consumed["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))
