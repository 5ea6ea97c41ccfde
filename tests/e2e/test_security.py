"""SASL, which passes through klamm, and TLS, which klamm speaks to brokers behind mapped names."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT = 100
MECHANISMS = {"SASL_PLAINTEXT": "PLAIN", "SASL_SSL": "SCRAM-SHA-256"}


@pytest.fixture(scope="module", params=MECHANISMS)
def secured(
    request: pytest.FixtureRequest,
    kafka: Cluster,
    inside: Namespace,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Klamm]]:
    """A listener of the brokers that wants SASL, and a klamm without credentials in front of it."""
    options: list[str] = []
    if request.param == "SASL_SSL":
        options = ["--upstream-tls", "--upstream-ca", str(kafka.ca)]
        for each in kafka.maps(request.param):
            options += ["--map", each]
    log = tmp_path_factory.mktemp(request.param) / "klamm.log"
    with klamm_in_front_of(kafka.bootstrap(request.param), inside.host, log, *options, ready=False) as klamm:
        klamm.wait_until_listening()
        yield request.param, klamm


@pytest.mark.sampled(5)
@pytest.mark.parametrize("client", ["librdkafka", "aiokafka", "kafka-python", "kafkajs", "java"])
def test_a_client_authenticates_itself_with_the_brokers(
    client: str, secured: tuple[str, Klamm], inside: Namespace, kafka: Cluster
) -> None:
    listener, klamm = secured
    topic = f"{listener}-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    who = {
        "security": "SASL_PLAINTEXT",
        "mechanism": MECHANISMS[listener],
        "username": "alice",
        "password": "alice-secret",
    }
    actions = [
        {"do": "produce", "topic": topic, "count": COUNT, **who},
        {"do": "consume", "topic": topic, "group": topic, "count": COUNT, **who},
    ]
    lines = programs.results(inside.run(*programs.command(client, klamm.bootstrap, *actions)))
    assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))


def test_a_wrong_password_is_refused_by_the_broker(secured: tuple[str, Klamm], inside: Namespace) -> None:
    listener, klamm = secured
    who = {
        "security": "SASL_PLAINTEXT",
        "mechanism": MECHANISMS[listener],
        "username": "alice",
        "password": "wrong",
    }
    action = {"do": "administrate", "topic": "never", "timeout_s": 5, **who}
    with pytest.raises(AssertionError, match=r"(?i)authentication"):
        inside.run(*programs.command("java", klamm.bootstrap, action))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("client", ["librdkafka", "aiokafka", "kafkajs", "java"])
def test_klamm_authenticates_itself_for_a_client_without_credentials(
    client: str, listener: str, inside: Namespace, kafka: Cluster, tmp_path: Path
) -> None:
    topic = f"own-{listener}-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    (tmp_path / "password").write_text("alice-secret\n")
    tls = f"tls: {{ca: {kafka.ca}}}" if listener == "SASL_SSL" else "tls: false"
    maps = ", ".join('"' + each.replace("=", '": "') + '"' for each in kafka.maps(listener))
    (tmp_path / "klamm.yaml").write_text(
        f"clusters:\n  - bootstrap: [{kafka.bootstrap(listener)}]\n    {tls}\n    map: {{{maps}}}\n"
        f"    sasl: {{mechanism: {MECHANISMS[listener]}, username: alice, password_file: password}}\n"
    )
    options = ("--config", str(tmp_path / "klamm.yaml"))
    with klamm_in_front_of(kafka.bootstrap(listener), inside.host, tmp_path / "klamm.log", *options) as klamm:
        assert len(klamm.counters()["clusters"][0]["nodes"]) > 2  # asked by klamm itself
        actions = [
            {"do": "produce", "topic": topic, "count": COUNT},
            {"do": "consume", "topic": topic, "group": topic, "count": COUNT},
        ]
        lines = programs.results(inside.run(*programs.command(client, klamm.bootstrap, *actions)))
    assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))
    assert "alice-secret" not in (tmp_path / "klamm.log").read_text()


def test_passwords_are_not_logged(secured: tuple[str, Klamm]) -> None:
    _, klamm = secured
    assert b"alice-secret" not in klamm.process.log.read_bytes()
