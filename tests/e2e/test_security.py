"""SASL, which passes through klamm, and TLS, which klamm speaks to brokers behind mapped names."""

from collections.abc import Iterator

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


@pytest.mark.parametrize("client", ["librdkafka", "aiokafka", "kafka-python", "java"])
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


def test_passwords_are_not_logged(secured: tuple[str, Klamm]) -> None:
    _, klamm = secured
    assert b"alice-secret" not in klamm.process.log.read_bytes()
