"""A cluster that wants SASL freezes, dies and comes back, and klamm without credentials says so."""

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.proxy.cluster.own_requests.probe import PROBE_S
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.brokers.processes import wait_for
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

LISTENERS = ("PLAINTEXT", "SASL_PLAINTEXT")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One broker that wants SASL."""
    with kraft_cluster(tmp_path_factory.mktemp("alone"), (1,), LISTENERS) as cluster:
        yield cluster


def _state(klamm: Klamm) -> tuple[bool, str]:
    """Of the cluster: ready, and its state in words."""
    [cluster] = json.loads(klamm.get("/v1/clusters"))
    return cluster["ready"], cluster["state"]


def _lines(log: Path, event: str) -> list[str]:
    return [line for line in log.read_text().splitlines() if f'"{event}"' in line]


def _refused(cluster: Cluster) -> int:
    """Connections of klamm that the broker has ended because nobody had authenticated."""
    text = (cluster.brokers[1].directory / "broker.log").read_text()
    return text.count("Unexpected Kafka request") + text.count("Unexpected ApiVersions request")


def test_behind_sasl_readyz_follows_brokers_that_freeze_die_and_come_back(
    alone: Cluster, tmp_path: Path
) -> None:
    log = tmp_path / "klamm.log"
    bootstrap = alone.bootstrap("SASL_PLAINTEXT")
    broker = alone.brokers[1].process
    with klamm_in_front_of(bootstrap, "127.0.0.1", log, "--state", "none") as klamm:
        refused = _refused(alone)
        time.sleep(3 * PROBE_S)  # the broker logs an error for each probe that is not as it wants it
        broker.child.send_signal(signal.SIGSTOP)
        try:
            wait_for(lambda: not klamm.ready(), "/readyz of a frozen cluster")
            assert _state(klamm) == (False, "degraded")
            assert 'klamm_cluster_ready{cluster="kafka"} 0' in klamm.get("/metrics")
        finally:
            broker.child.send_signal(signal.SIGCONT)
        wait_for(klamm.ready, "/readyz of a cluster that goes on")
        wait_for(lambda: _lines(log, "reachable"), "the line in the log, which a thread writes")
        assert [len(_lines(log, event)) for event in ("unreachable", "reachable")] == [1, 1]
        assert _refused(alone) == refused  # probes need no authentication
        alone.kill(1)
        wait_for(lambda: not klamm.ready(), "/readyz of a cluster that died")
