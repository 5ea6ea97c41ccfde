"""Real clients that know nothing of klamm, in a network where iptables redirects their connections to it.

Broker, clients and klamm share the network, as the containers of a pod do. klamm has a group of its own, by
which the redirect leaves its connections out; its user is that of the others, who may read klamm's files.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.brokers import certificates
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.brokers.processes import Process, free_block, free_ports, wait_for
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, Klamm
from tests.fakes.redirect import iptables, own_network

pytestmark = pytest.mark.brokers

COUNT = 100
GROUP = "61234"  # of klamm
ONE_COPY = {
    f"{topic}.replication.factor": "1"
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
} | {"transaction.state.log.min.isr": "1", "share.coordinator.state.topic.min.isr": "1"}
CLIENTS = ("librdkafka", "aiokafka", "java")


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[None]:
    with own_network():
        yield


@pytest.fixture(scope="module")
def pod(network: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two brokers within the network."""
    folder = tmp_path_factory.mktemp("pod")
    with kraft_cluster(folder, (1, 2), ("PLAINTEXT", "SASL_SSL"), ONE_COPY) as cluster:
        yield cluster


@contextmanager
def redirected(pod: Cluster, listener: str, folder: Path, *options: str) -> Iterator[Klamm]:
    """klamm, to which all connections to this listener of the brokers are redirected but its own."""
    first, admin = free_block(), f"127.0.0.1:{free_ports()}"
    command = ["setpriv", "--regid", GROUP, "--clear-groups", str(COMMAND), "run", pod.bootstrap(listener)]
    command += ["--transparent", "--listen", f"127.0.0.1:{first}", "--admin", admin, "--log", "all"]
    command += ["--capture", str(folder / "traffic")]
    process = Process([*command, *options], folder / "klamm.log")
    ports = ",".join(str(broker.ports[listener]) for broker in pod.brokers.values())
    rule = ["OUTPUT", "-p", "tcp", "-m", "multiport", "--dports", ports]
    rule += ["-m", "owner", "!", "--gid-owner", GROUP, "-j", "REDIRECT", "--to-ports", str(first)]
    iptables("-A", *rule)
    klamm = Klamm(process, "127.0.0.1", first, admin)
    try:
        if listener == "PLAINTEXT":
            wait_for(klamm.ready, "klamm", [process])
        else:
            klamm.wait_until_listening()
        yield klamm
        klamm.assert_no_problems()
    finally:
        iptables("-D", *rule)
        assert process.stop() == 0, process.tail()


@pytest.fixture(scope="module")
def plain(pod: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Klamm]:
    with redirected(pod, "PLAINTEXT", tmp_path_factory.mktemp("plain")) as klamm:
        yield klamm


def run(client: str, bootstrap: str, folder: Path, *actions: dict[str, Any]) -> list[dict[str, Any]]:
    process = Process(programs.command(client, bootstrap, *actions), folder / "client.log")
    wait_for(lambda: not process.running, client, timeout_s=120)
    assert process.child.returncode == 0, process.tail()
    return programs.results((folder / "client.log").read_text())


def logged(klamm: Klamm) -> list[dict[str, Any]]:
    return [json.loads(line) for line in klamm.process.log.read_text().splitlines() if line.startswith("{")]


def captured(klamm: Klamm, where: str) -> list[str]:
    """The exchanges in the capture for which this holds."""
    command = [str(COMMAND), "show", str(klamm.process.log.parent / "traffic"), where, "--json"]
    return subprocess.check_output(command, text=True, timeout=60).splitlines()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_knows_nothing_of_klamm_passes_through_it(
    client: str, plain: Klamm, pod: Cluster, tmp_path: Path
) -> None:
    topic = f"transparent-{client}"
    topics.create(pod.bootstrap(), topic, [[1], [2], [1]])
    settings = {"topic": topic, "count": COUNT}
    actions = [{"do": "produce", **settings}, {"do": "consume", "group": topic, **settings}]
    lines = run(client, pod.bootstrap(), tmp_path, *actions)
    assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))

    def brokers(api: str) -> set[str]:
        exchanges = [line for line in logged(plain) if line["event"] == "exchange" and line["api"] == api]
        return {line["broker"] for line in exchanges if topic in line.get("topics", {})}

    wait_for(lambda: brokers("Fetch") and brokers("Produce"), "the log", [plain.process])
    assert brokers("Produce") == brokers("Fetch") == {"1", "2"}
    wait_for(lambda: captured(plain, f'topic == "{topic}"'), "the capture", [plain.process])


def test_the_addresses_that_clients_get_are_the_brokers_own(plain: Klamm, pod: Cluster) -> None:
    from confluent_kafka.admin import AdminClient

    found = AdminClient({"bootstrap.servers": pod.bootstrap()}).list_topics(timeout=30).brokers
    assert {(each.host, each.port) for each in found.values()} == {pod.address(1), pod.address(2)}
    wait_for(
        lambda: any(
            line.get("client_id") == "rdkafka" and line["api"] == "Metadata" for line in exchanges(plain)
        ),
        "the log",
    )


def exchanges(klamm: Klamm) -> list[dict[str, Any]]:
    return [line for line in logged(klamm) if line["event"] == "exchange"]


def test_a_rule_acts_on_redirected_connections(plain: Klamm, pod: Cluster, tmp_path: Path) -> None:
    topic = "transparent-rule"
    topics.create(pod.bootstrap(), topic, [[1]])
    command = [
        str(COMMAND),
        "inject",
        "Produce",
        "NOT_LEADER",
        "--topic",
        topic,
        "--times",
        "1",
        "--follow",
        "0",
    ]
    injecting = Process([*command, "--admin", plain.admin], tmp_path / "inject.log")
    assert injecting.child.wait(timeout=60) == 0, injecting.tail()
    run("librdkafka", pod.bootstrap(), tmp_path, {"do": "produce", "topic": topic, "count": 1})

    def origins() -> list[str]:
        return [
            line["origin"]
            for line in exchanges(plain)
            if line["api"] == "Produce" and topic in line["topics"]
        ]

    wait_for(lambda: len(origins()) == 2, "the log", [plain.process])
    assert origins() == ["klamm", "broker"]


def secured(ca: Path) -> dict[str, Any]:
    who = {"mechanism": "SCRAM-SHA-256", "username": "alice", "password": "alice-secret"}
    return {"security": "SASL_SSL", "ca": str(ca), **who}


@pytest.mark.parametrize("client", ["librdkafka", "java"])
def test_tls_of_a_client_passes_unread_and_is_counted(
    client: str, pod: Cluster, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = f"opaque-{client}"
    topics.create(pod.bootstrap(), topic, [[1], [2]])
    options = ["--upstream-tls", "--upstream-ca", str(pod.ca)]
    settings = {"topic": topic, "count": COUNT, **secured(pod.ca)}
    actions = [{"do": "produce", **settings}, {"do": "consume", "group": topic, **settings}]
    with redirected(pod, "SASL_SSL", tmp_path_factory.mktemp("opaque"), *options) as klamm:
        lines = run(client, pod.bootstrap("SASL_SSL"), tmp_path, *actions)
        assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))
        sent: Counter[str] = Counter()
        for row in klamm.counters()["opaque"]:
            sent[row["sender"]] += row["count"]
        assert min(sent["client"], sent["broker"]) > 1000
        assert any(line["event"] == "opaque" for line in logged(klamm))
        assert "klamm_opaque_bytes_total" in klamm.get("/metrics")
        assert not any((klamm.process.log.parent / "traffic").iterdir())


def test_tls_of_a_client_ends_at_klamm_where_it_has_a_certificate(
    pod: Cluster, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    topic = "transparent-tls"
    topics.create(pod.bootstrap(), topic, [[1], [2]])
    folder = tmp_path_factory.mktemp("certificates")
    certificates.make(folder, ["127.0.0.1", "localhost"])
    options = [
        "--upstream-tls",
        "--upstream-ca",
        str(pod.ca),
        "--listen-tls-cert",
        str(folder / "broker.pem"),
    ]
    settings = {"topic": topic, "count": COUNT, **secured(folder / "ca.pem")}
    actions = [{"do": "produce", **settings}, {"do": "consume", "group": topic, **settings}]
    with redirected(pod, "SASL_SSL", folder, *options) as klamm:
        lines = run("librdkafka", pod.bootstrap("SASL_SSL"), tmp_path, *actions)
        assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))
        assert klamm.counters()["opaque"] == []
        wait_for(lambda: any(line["api"] == "Produce" for line in exchanges(klamm)), "the log")
