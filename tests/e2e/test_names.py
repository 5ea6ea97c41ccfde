"""Real clients of two real clusters behind one port of klamm, which tells them apart by host names (SNI).

In the clients' namespace alone the names lead to a load balancer, HAProxy. It passes TLS on from the
advertised port to that of klamm, and tells klamm the addresses of the clients.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.brokers import certificates
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, free_ports, wait_for
from tests.clients import programs, records
from tests.clients.drivers import DRIVERS
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, Klamm

pytestmark = pytest.mark.brokers

COUNT = 100
TOLD = 443  # the port that clients get
CLIENTS = ("librdkafka", "aiokafka", "kafka-python", "kafkajs", "java")
CLUSTERS = ("orders", "billing")
NODES = ("bootstrap", *(f"broker-{number}" for number in (1, 2, 3)), "broker-controller-1")
SUBJECT = "/O=Example/CN=ada"
ONE_COPY = {
    f"{topic}.replication.factor": "1"
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
} | {"transaction.state.log.min.isr": "1", "share.coordinator.state.topic.min.isr": "1"}
CONFIG = """
admin: {admin}
state: none
log: {{apis: all, format: json}}
rules: {folder}/rules.yaml
capture: {folder}/traffic
clusters:
  - name: orders
    bootstrap: {orders}
    listen: 127.0.0.1:{port}
    proxy_protocol: {{from: 127.0.0.0/8}}
    listen_tls: {{cert: {folder}/orders/broker.pem}}
    names: {{bootstrap: bootstrap.orders.example, nodes: broker-$(node).orders.example, port: 443}}
  - name: billing
    bootstrap: {billing}
    listen: 127.0.0.1:{port}
    proxy_protocol: {{from: 127.0.0.0/8}}
    listen_tls: {{cert: {folder}/billing/broker.pem, ca: {folder}/billing/ca.pem}}
    names: {{bootstrap: bootstrap.billing.example, nodes: broker-$(node).billing.example, port: 443}}
"""


RULES = "rules: [{name: slow, cluster: billing, broker: 1, api: Metadata, delay: 1ms}]\n"


HAPROXY = """\
defaults
    mode tcp
    timeout connect 5s
    timeout client 1m
    timeout server 1m
frontend clients
    bind {host}:443
    default_backend klamm
backend klamm
    server klamm 127.0.0.1:{port} send-proxy-v2
"""


class Ground(NamedTuple):
    """klamm before both clusters, its certificates in `folder`, and a namespace that knows the names."""

    klamm: Klamm
    inside: Namespace
    folder: Path
    brokers: dict[str, Cluster]

    def exchanges(self, topic: str) -> list[dict[str, Any]]:
        text = self.klamm.process.log.read_text()
        found = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
        return [line for line in found if topic in line.get("topics", {})]

    def tls(self, cluster: str) -> dict[str, str]:
        """The files of a client of this cluster; billing asks for a certificate."""
        cert = {"cert": str(self.folder / "billing" / "client.pem")} if cluster == "billing" else {}
        return {"ca": str(self.folder / cluster / "ca.pem"), **cert}


def kcat(where: str, files: dict[str, str]) -> list[str]:
    """The command that lists a cluster's brokers as JSON."""
    options = {"security.protocol": "ssl", "ssl.ca.location": files["ca"]}
    return [
        "kcat",
        "-b",
        where,
        *(word for key, value in options.items() for word in ("-X", f"{key}={value}")),
        "-L",
        "-J",
    ]


@pytest.fixture(scope="module")
def billing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A second cluster, of one broker."""
    with kraft_cluster(tmp_path_factory.mktemp("billing"), (1,), ("PLAINTEXT",), ONE_COPY) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def ground(
    kafka: Cluster, billing: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    folder, port, admin = tmp_path_factory.mktemp("names"), free_ports(), f"127.0.0.1:{free_ports()}"
    for name in CLUSTERS:
        (folder / name).mkdir()
        certificates.make(folder / name, [f"*.{name}.example"], f"authority of {name}")
    certificates.of_client(folder / "billing", SUBJECT)
    hosts = folder / "hosts"
    names = (f"{inside.host} {node}.{name}.example" for name in CLUSTERS for node in NODES)
    hosts.write_text(
        "\n".join(["127.0.0.1 localhost", f"{inside.host} klamm klamm.example klamm_1.example", *names, ""])
    )
    (folder / "rules.yaml").write_text(RULES)
    where = {"orders": kafka.bootstrap(), "billing": billing.bootstrap(), "host": inside.host, "port": port}
    (folder / "klamm.yaml").write_text(CONFIG.format(admin=admin, folder=folder, **where))
    (folder / "haproxy.cfg").write_text(HAPROXY.format(**where))
    program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    assert program is not None, "this test needs HAProxy (Debian package haproxy)"
    balancer = Process([program, "-db", "-f", str(folder / "haproxy.cfg")], folder / "haproxy.log")
    process = Process([str(COMMAND), "run", "--config", str(folder / "klamm.yaml")], folder / "klamm.log")
    # kcat ends as soon as it has its list, in the midst of handshakes with brokers that it learnt of
    foreseen = ["no_server_name", "unknown_server_name", "client_tls_failed"]
    klamm = Klamm(process, inside.host, port, admin, foreseen)
    try:
        wait_for(klamm.ready, "klamm", [process])
        wait_for(
            lambda: socket.create_connection((inside.host, TOLD), 5).close() or True, "HAProxy", [balancer]
        )
        yield Ground(klamm, inside._replace(hosts=hosts), folder, {"orders": kafka, "billing": billing})
        klamm.assert_no_problems()
    finally:
        balancer.stop()
        assert process.stop() == 0, process.tail()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reaches_each_broker_of_its_cluster_by_name(
    client: str, cluster: str, ground: Ground
) -> None:
    topic = f"names-{cluster}-{client}"
    brokers = ground.brokers[cluster]
    topics.create(brokers.bootstrap(), topic, [[number] for number in brokers.brokers])
    settings = {"security": "SSL", "topic": topic, "count": COUNT, **ground.tls(cluster)}
    actions = [{"do": "produce", **settings}, {"do": "consume", "group": topic, **settings}]
    command = programs.command(client, f"bootstrap.{cluster}.example:{TOLD}", *actions)
    lines = programs.results(ground.inside.run(*command))
    assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))

    def led(api: str) -> set[tuple[str, str]]:
        return {(line["cluster"], line["broker"]) for line in ground.exchanges(topic) if line["api"] == api}

    every = {(cluster, str(number)) for number in brokers.brokers}
    wait_for(lambda: led("Produce") == led("Fetch") == every, "the log", [ground.klamm.process])
    told = {line["connection"].rpartition(":")[0] for line in ground.exchanges(topic)}
    assert told == {str(ip_address(ground.inside.host) + 1)}  # the client's end of the link
    principals = {line.get("principal") for line in ground.exchanges(topic)}
    assert principals == ({None} if cluster == "orders" else {"User:CN=ada,O=Example"})


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_franz_go_reaches_each_broker_of_its_cluster_by_name(
    cluster: str, ground: Ground, tmp_path: Path
) -> None:
    topic = f"names-{cluster}-franz-go"
    brokers = ground.brokers[cluster]
    topics.create(brokers.bootstrap(), topic, [[number] for number in brokers.brokers])
    where = f"bootstrap.{cluster}.example:{TOLD}"
    options: dict[str, Any] = {
        "log": tmp_path / "log",
        "inside": ground.inside,
        "n": 10,
        **ground.tls(cluster),
    }
    driver = DRIVERS["franz-go"]
    made = driver.run(where, "produce", topic, **options)
    read = driver.run(where, "consume", topic, group=topic, **options)
    assert [event["i"] for event in made if event["event"] == "produced"] == list(range(10))
    assert sorted(int(event["value"]) for event in read if event["event"] == "record") == list(range(10))


def test_the_addresses_in_answers_are_names_and_the_advertised_port(ground: Ground) -> None:
    where = f"bootstrap.orders.example:{TOLD}"
    listing = ground.inside.run(*kcat(where, ground.tls("orders")))
    told = {row["id"]: row["name"] for row in json.loads(listing)["brokers"]}
    assert told == {number: f"broker-{number}.orders.example:{TOLD}" for number in (1, 2, 3)}


@pytest.mark.parametrize(
    ("host", "kind", "alert"),
    [
        (None, "no_server_name", "alert missing extension"),
        ("klamm.example", "unknown_server_name", "unrecognized name"),
    ],
    ids=["an IP address", "an unknown name"],
)
def test_a_client_without_a_name_or_with_an_unknown_one_is_refused_with_a_reason(
    host: str | None, kind: str, alert: str, ground: Ground, tmp_path: Path
) -> None:
    """librdkafka tells the alert, Java gives up at once; the log of klamm says what to change."""
    where, files = f"{host or ground.inside.host}:{TOLD}", ground.tls("orders")
    listing = Process(ground.inside.command(*kcat(where, files)), tmp_path / "kcat.log")
    wait_for(lambda: alert in (tmp_path / "kcat.log").read_text(), "the alert", [listing], timeout_s=30)
    listing.kill()
    action = {"do": "produce", "topic": "none", "count": 1, "security": "SSL", **files}
    java = Process(ground.inside.command(*programs.command("java", where, action)), tmp_path / "java.log")
    wait_for(lambda: not java.running, "java", timeout_s=120)
    assert "failed authentication due to: SSL handshake failed" in (tmp_path / "java.log").read_text()
    log = (line for line in ground.klamm.process.log.read_text().splitlines() if line.startswith("{"))
    said = [line["message"] for line in map(json.loads, log) if line["event"] == kind]
    assert said
    assert "bootstrap.orders.example, broker-$(node).orders.example" in said[0]
    [row] = [row for row in ground.klamm.counters()["problems"] if row["kind"] == kind]
    assert row["cluster"] == ""
    assert row["count"] >= 2


@pytest.mark.parametrize("host", ["klamm", "klamm_1.example"])
def test_java_sends_no_name_without_a_dot_and_none_with_an_underscore(host: str, ground: Ground) -> None:
    """So klamm takes no such names in its settings."""

    def refused() -> int:
        rows = ground.klamm.counters()["problems"]
        return sum(row["count"] for row in rows if row["kind"] == "no_server_name")

    before, files = refused(), ground.tls("orders")
    action = {"do": "produce", "topic": "none", "count": 1, "security": "SSL", **files}
    ground.inside.run(*programs.command("java", f"{host}:{TOLD}", action))
    assert refused() > before


def test_rules_and_captures_tell_the_clusters_apart(ground: Ground) -> None:
    for cluster in CLUSTERS:
        files, where = ground.tls(cluster), f"broker-1.{cluster}.example:{TOLD}"
        action = {"do": "produce", "topic": "kept", "count": COUNT, "security": "SSL", **files}
        topics.create(ground.brokers[cluster].bootstrap(), "kept", [[1]])
        ground.inside.run(*programs.command("librdkafka", where, action))
    [rule] = json.loads(ground.klamm.get("/v1/rules"))
    assert rule["hits"] > 0

    def captured() -> set[str]:
        show = [str(COMMAND), "show", str(ground.folder / "traffic"), 'topic == "kept"', "--json"]
        lines = subprocess.check_output(show, text=True, timeout=60).splitlines()
        return {json.loads(line)["cluster"] for line in lines}

    wait_for(lambda: captured() == set(CLUSTERS), "the capture", [ground.klamm.process])


def test_openssl_gets_the_certificate_of_the_cluster_that_it_names(ground: Ground) -> None:
    for name in CLUSTERS:
        command = ["openssl", "s_client", "-connect", f"{ground.inside.host}:{TOLD}"]
        command += ["-servername", f"broker-1.{name}.example"]
        cert = ground.tls(name).get("cert")
        command += [] if cert is None else ["-cert", cert, "-key", cert]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
        )
        assert f"CN = authority of {name}" in done.stdout.replace("CN=", "CN = ")
