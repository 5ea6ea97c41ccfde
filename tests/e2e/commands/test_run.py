"""`klamm run` around its traffic: it starts before its cluster, and comes back as it was."""

from pathlib import Path

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import free_block, free_ports, wait_for
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import klamm_in_front_of

pytestmark = pytest.mark.brokers

PORT = 20900


def _brokers(address: tuple[str, int]) -> dict[int, tuple[str, int]]:
    rows = ask(address, "Metadata", 12, {"topics": []})["brokers"]
    return {row["node_id"]: (row["host"], row["port"]) for row in rows}


def test_every_broker_has_the_same_port_after_a_restart(kafka: Cluster, inside: Namespace, log: Path) -> None:
    seen = []
    for bootstrap in (kafka.bootstrap(), ",".join(reversed(kafka.bootstrap().split(",")))):
        with klamm_in_front_of(bootstrap, inside.host, log, first=PORT) as klamm:
            seen.append(_brokers(klamm.address))
    assert seen[0] == seen[1]
    assert {host for host, _ in seen[0].values()} == {inside.host}


def test_a_client_is_told_the_address_that_it_connected_to(
    kafka: Cluster, inside: Namespace, log: Path
) -> None:
    with klamm_in_front_of(
        kafka.bootstrap(), "0.0.0.0", log, first=free_block("0.0.0.0"), advertise=False
    ) as klamm:
        for host in (inside.host, "127.0.0.1"):
            assert {host_there for host_there, _ in _brokers((host, klamm.port)).values()} == {host}


def test_klamm_is_not_ready_until_its_cluster_answers(inside: Namespace, log: Path) -> None:
    nobody = f"127.0.0.1:{free_ports()}"
    with klamm_in_front_of(nobody, inside.host, log, ready=False) as klamm:
        wait_for(lambda: nobody.encode() in log.read_bytes(), "a line about the cluster", [klamm.process])
        assert not klamm.ready()


def test_a_broker_that_speaks_tls_is_answered_with_the_option_to_add(
    kafka: Cluster, inside: Namespace, log: Path
) -> None:
    with klamm_in_front_of(kafka.bootstrap("SASL_SSL"), inside.host, log, ready=False) as klamm:
        wait_for(lambda: b"--upstream-tls" in log.read_bytes(), "a line with the option", [klamm.process])


def test_a_controllers_port_is_named_as_one_with_what_to_give_instead(
    kafka: Cluster, inside: Namespace, log: Path
) -> None:
    where = f"127.0.0.1:{kafka.controller_port}"
    with klamm_in_front_of(where, inside.host, log) as klamm:
        told = f"bootstrap.controllers={klamm.bootstrap}"
        wait_for(lambda: told in log.read_text(), "the banner", [klamm.process])
        text = f"{where} is a controller, which serves no producers or consumers"
        wait_for(lambda: text in log.read_text(), "the line about the controller", [klamm.process])
        assert "bootstrap.servers=" not in log.read_text()
