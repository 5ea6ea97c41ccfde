"""What `klamm run` does around its traffic: starts before its cluster, and comes back as it was."""

from pathlib import Path

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, free_ports, wait_for
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import COMMAND, Klamm

pytestmark = pytest.mark.brokers


def _start(bootstrap: str, host: str, log: Path, first: int) -> Klamm:
    admin = f"127.0.0.1:{free_ports()}"
    listen = f"{host}:{first}-{first + 99}"
    process = Process([str(COMMAND), "run", bootstrap, "--listen", listen, "--admin", admin], log)
    return Klamm(process, host, first, admin)


def _brokers(klamm: Klamm) -> dict[int, tuple[str, int]]:
    rows = ask(klamm.address, "Metadata", 12, {"topics": []})["brokers"]
    return {row["node_id"]: (row["host"], row["port"]) for row in rows}


def test_every_broker_has_the_same_port_after_a_restart(kafka: Cluster, inside: Namespace, log: Path) -> None:
    seen = []
    for bootstrap in (kafka.bootstrap(), ",".join(reversed(kafka.bootstrap().split(",")))):
        klamm = _start(bootstrap, inside.host, log, 30100)
        wait_for(klamm.ready, "klamm", [klamm.process])
        seen.append(_brokers(klamm))
        assert klamm.process.stop() == 0
    assert seen[0] == seen[1]
    assert {host for host, _ in seen[0].values()} == {inside.host}


def test_a_client_is_told_the_address_that_it_connected_to(
    kafka: Cluster, inside: Namespace, log: Path
) -> None:
    klamm = _start(kafka.bootstrap(), "0.0.0.0", log, 30200)
    try:
        wait_for(klamm.ready, "klamm", [klamm.process])
        for host in (inside.host, "127.0.0.1"):
            rows = ask((host, 30200), "Metadata", 12, {"topics": []})["brokers"]
            assert {row["host"] for row in rows} == {host}
    finally:
        assert klamm.process.stop() == 0


def test_klamm_is_not_ready_until_its_cluster_answers(kafka: Cluster, inside: Namespace, log: Path) -> None:
    nobody = f"127.0.0.1:{free_ports()}"
    klamm = _start(nobody, inside.host, log, 30300)
    try:
        wait_for(lambda: nobody.encode() in log.read_bytes(), "a line about the cluster", [klamm.process])
        assert not klamm.ready()
        assert klamm.process.running
    finally:
        assert klamm.process.stop() == 0
