"""Real clients that speak TLS to klamm, in front of brokers with and without TLS."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.brokers import certificates
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import wait_for
from tests.clients import programs, records
from tests.clients.drivers import DRIVERS
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT = 100
CLIENTS = ("librdkafka", "aiokafka", "kafka-python", "kafkajs", "java")
SUBJECT = "/C=DE/O=Example, Inc./OU=shop/OU=orders/CN=Zoë"
PRINCIPAL = r"User:CN=Zoë,OU=orders,OU=shop,O=Example\, Inc.,C=DE"
LISTENERS: dict[str, dict[str, Any]] = {  # of the brokers -> the settings of clients
    "PLAINTEXT": {"security": "SSL"},
    "SASL_PLAINTEXT": {
        "security": "SASL_SSL",
        "mechanism": "PLAIN",
        "username": "alice",
        "password": "alice-secret",
    },
    "SASL_SSL": {
        "security": "SASL_SSL",
        "mechanism": "SCRAM-SHA-256",
        "username": "alice",
        "password": "alice-secret",
    },
}


@pytest.fixture(scope="module")
def files(inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """klamm's certificate (broker.pem), its authority (ca.pem), a client's (client.pem); others."""
    folder = tmp_path_factory.mktemp("listen-tls")
    certificates.make(folder, [inside.host])
    certificates.of_client(folder, SUBJECT)
    (folder / "other").mkdir()
    certificates.make(folder / "other", ["elsewhere.example"])
    certificates.of_client(folder / "other", SUBJECT)
    return folder


def own(files: Path) -> list[str]:
    """klamm's own certificate."""
    return ["--listen-tls-cert", str(files / "broker.pem")]


def upstream(kafka: Cluster, listener: str) -> list[str]:
    """The options with which klamm reaches a listener of the brokers."""
    if "SSL" not in listener:
        return []
    maps = [word for each in kafka.maps(listener) for word in ("--map", each)]
    return ["--upstream-tls", "--upstream-ca", str(kafka.ca), *maps]


@pytest.fixture(scope="module", params=LISTENERS)
def secured(
    request: pytest.FixtureRequest,
    kafka: Cluster,
    inside: Namespace,
    files: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Klamm]]:
    listener = request.param
    log = tmp_path_factory.mktemp(listener) / "klamm.log"
    options = [*own(files), *upstream(kafka, listener)]
    ended = ["client_tls_failed"]  # a client that is done closes connections that it has just begun
    with klamm_in_front_of(
        kafka.bootstrap(listener), inside.host, log, *options, ready=False, foreseen=ended
    ) as klamm:
        klamm.wait_until_listening()
        yield listener, klamm


@pytest.mark.sampled(8)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_speaks_tls_to_klamm(
    client: str, secured: tuple[str, Klamm], inside: Namespace, kafka: Cluster, files: Path
) -> None:
    listener, klamm = secured
    topic = f"tls-{listener}-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    settings = {**LISTENERS[listener], "ca": str(files / "ca.pem"), "topic": topic, "count": COUNT}
    actions = [{"do": "produce", **settings}, {"do": "consume", "group": topic, **settings}]
    lines = programs.results(inside.run(*programs.command(client, klamm.bootstrap, *actions)))
    assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))


def test_franz_go_speaks_tls_to_klamm(
    secured: tuple[str, Klamm], inside: Namespace, kafka: Cluster, files: Path, tmp_path: Path
) -> None:
    listener, klamm = secured
    topic = f"tls-{listener}-franz-go"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    options: dict[str, Any] = {"ca": files / "ca.pem", "n": 10}
    options |= {"username": "alice", "password": "alice-secret"} if "SASL" in listener else {}
    driver, log = DRIVERS["franz-go"], tmp_path / "client.log"
    made = driver.run(klamm.bootstrap, "produce", topic, log=log, inside=inside, **options)
    read = driver.run(klamm.bootstrap, "consume", topic, log=log, inside=inside, group=topic, **options)
    assert [event["i"] for event in made if event["event"] == "produced"] == list(range(10))
    assert sorted(int(event["value"]) for event in read if event["event"] == "record") == list(range(10))


@pytest.fixture(scope="module")
def asking(
    kafka: Cluster, inside: Namespace, files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Klamm]:
    """klamm, which asks clients for a certificate."""
    log = tmp_path_factory.mktemp("mtls") / "klamm.log"
    options = [*own(files), "--listen-tls-ca", str(files / "ca.pem"), "--log", "Produce"]
    with klamm_in_front_of(
        kafka.bootstrap(), inside.host, log, *options, foreseen=["client_tls_failed"]
    ) as klamm:
        yield klamm


def logged(klamm: Klamm) -> list[dict[str, Any]]:
    return [json.loads(line) for line in klamm.process.log.read_text().splitlines() if line.startswith("{")]


@pytest.mark.parametrize("client", [*CLIENTS, "franz-go"])
def test_a_client_with_a_certificate_has_its_principal_in_the_log(
    client: str, asking: Klamm, inside: Namespace, kafka: Cluster, files: Path, tmp_path: Path
) -> None:
    topic = f"mtls-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    ca, cert = str(files / "ca.pem"), str(files / "client.pem")
    if client == "franz-go":
        log = tmp_path / "client.log"
        DRIVERS[client].run(asking.bootstrap, "produce", topic, log=log, inside=inside, n=1, ca=ca, cert=cert)
    else:
        action = {"do": "produce", "topic": topic, "count": COUNT, "security": "SSL", "ca": ca, "cert": cert}
        inside.run(*programs.command(client, asking.bootstrap, action))

    def principals() -> set[str | None]:
        exchanges = [line for line in logged(asking) if line["event"] == "exchange"]
        return {line.get("principal") for line in exchanges if topic in line.get("topics", {})}

    wait_for(lambda: bool(principals()), "the log", [asking.process])
    assert principals() == {PRINCIPAL}


def test_connections_are_listed_with_their_principal(asking: Klamm, files: Path) -> None:
    trusts = ssl.create_default_context(cafile=files / "ca.pem")
    trusts.load_cert_chain(files / "client.pem")
    with (
        socket.create_connection(asking.address, 10) as plain,
        trusts.wrap_socket(plain, server_hostname=asking.host),
    ):
        wait_for(lambda: json.loads(asking.get("/v1/connections")), "the connection", [asking.process])
        assert {row["principal"] for row in json.loads(asking.get("/v1/connections"))} == {PRINCIPAL}
        command = [str(COMMAND), "connections", "--admin", asking.admin]
        head, *rows = subprocess.check_output(command, text=True, timeout=30).splitlines()
        assert head.split()[-1] == "principal"
        assert all(row.endswith(PRINCIPAL) for row in rows)


class Mistake(NamedTuple):
    """The settings of a client and the options of klamm, and what klamm's log says of them."""

    settings: Callable[[Path], dict[str, Any]]
    options: Callable[[Path], list[str]]
    kind: str
    says: str


def mutual(files: Path) -> list[str]:
    return [*own(files), "--listen-tls-ca", str(files / "ca.pem")]


def trusting(files: Path, **more: Any) -> dict[str, Any]:
    return {"security": "SSL", "ca": str(files / "ca.pem"), **more}


DISTRUST = "the client does not trust klamm's certificate"
UNTRUSTED = Mistake(lambda at: trusting(at / "other"), own, "client_tls_failed", DISTRUST)
MISTAKES = {
    "another host": Mistake(
        lambda at: trusting(at / "other"), lambda at: own(at / "other"), "client_tls_failed", DISTRUST
    ),
    "no certificate": Mistake(trusting, mutual, "client_tls_failed", "the client sends no certificate"),
    "another authority": Mistake(
        lambda at: trusting(at, cert=str(at / "other" / "client.pem")),
        mutual,
        "client_tls_failed",
        "the client's certificate is not of an authority in listen_tls.ca",
    ),
    "plain text": Mistake(
        lambda at: {"security": "PLAINTEXT"},
        own,
        "plain_from_client",
        "the client speaks no TLS to a TLS port",
    ),
    "TLS to a plain port": Mistake(
        trusting, lambda at: [], "tls_from_client", "the client speaks TLS (handshake) to a plain port"
    ),
}
SAYS = {  # a client that does not trust klamm
    "librdkafka": "certificate verify failed",
    "aiokafka": "CERTIFICATE_VERIFY_FAILED",
    "kafka-python": "Unable to bootstrap",
    "kafkajs": "Connection error",
    "java": "SSL handshake failed",
    "franz-go": "tls: failed to verify certificate",
}


def failing(
    client: str, mistake: Mistake, kafka: Cluster, inside: Namespace, files: Path, log: Path, folder: Path
) -> str:
    """Let a client meet klamm with a mistake: what the client printed. klamm's log has the line."""
    settings, options = mistake.settings(files), mistake.options(files)
    with klamm_in_front_of(kafka.bootstrap(), inside.host, log, *options, foreseen=[mistake.kind]) as klamm:
        if client == "franz-go":
            ca, words = settings["ca"], folder / "client.log"
            driver = DRIVERS[client]
            driver.run(klamm.bootstrap, "produce", "t", log=words, inside=inside, n=1, timeout_ms=4000, ca=ca)
            said = words.read_text()
        else:
            action = {"do": "produce", "topic": "t", "count": 1, "timeout_s": 3, **settings}
            process = inside.start(folder / "client.log", *programs.command(client, klamm.bootstrap, action))
            wait_for(lambda: not process.running, client, timeout_s=90)
            said = process.log.read_text()
        wait_for(lambda: any(line["event"] == mistake.kind for line in logged(klamm)), "the log")
        line = next(line for line in logged(klamm) if line["event"] == mistake.kind)
        assert mistake.says in line["message"]
    return said


@pytest.mark.sampled(3)
@pytest.mark.parametrize("client", SAYS)
def test_a_client_that_does_not_trust_klamm_says_so_and_klamm_names_its_setting(
    client: str, kafka: Cluster, inside: Namespace, files: Path, log: Path, tmp_path: Path
) -> None:
    assert SAYS[client] in failing(client, UNTRUSTED, kafka, inside, files, log, tmp_path)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("client", ["librdkafka", "java"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_klamm_tells_a_mistake_of_tls(
    client: str, mistake: str, kafka: Cluster, inside: Namespace, files: Path, log: Path, tmp_path: Path
) -> None:
    said = failing(client, MISTAKES[mistake], kafka, inside, files, log, tmp_path)
    if "certificate" in mistake or "authority" in mistake:
        assert {"java": "failed authentication", "librdkafka": "alert"}[client] in said
