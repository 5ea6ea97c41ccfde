"""Brokers and clients that are newer than the tables of klamm."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.decoders import API
from tests.brokers.jars import compiled, java
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.clients.programs import FOLDER, QUIET
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import klamm_in_front_of

pytestmark = pytest.mark.brokers

VERSION = "4.4.0"
ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker of Kafka 4.4.0, controller too."""
    with kraft_cluster(
        tmp_path_factory.mktemp("kafka-4.4.0"), (1,), settings=ALONE, version=VERSION
    ) as cluster:
        yield cluster


def _features(bootstrap: str) -> str:
    classes = compiled(VERSION, FOLDER / "java" / "kafka_4_4")
    command = java(VERSION, "DescribeFeatures", bootstrap, options=QUIET, classes=classes)
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def _offered(address: tuple[str, int]) -> dict[int, int]:
    rows = ask(address, "ApiVersions", 0, {})["api_keys"]
    return {row["api_key"]: row["max_version"] for row in rows}


def test_an_admin_client_describes_the_features_of_a_newer_broker(newer: Cluster, log: Path) -> None:
    with klamm_in_front_of(newer.bootstrap(), "127.0.0.1", log) as klamm:
        features = _features(klamm.bootstrap)
        offered = _offered(klamm.address)[18]
    assert "metadata.version" in features
    assert features == _features(newer.bootstrap())
    assert offered == min(API["ApiVersions"].versions.last, _offered(newer.address(1))[18])
