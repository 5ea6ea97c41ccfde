"""Real clients that authenticate with klamm, before brokers without SASL and with klamm's credentials."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import wait_for
from tests.clients import programs, records
from tests.clients.drivers import DRIVERS
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, Klamm, klamm_in_front_of
from tests.tokens import AUDIENCE, ISSUER, Issuer

pytestmark = pytest.mark.brokers

COUNT = 100
CLIENTS = ("librdkafka", "aiokafka", "kafka-python", "kafkajs", "java", "franz-go")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
USER, PASSWORD, WRONG = "shop", "planted-password-of-shop", "planted-wrong-password"
OTHER, OTHER_PASSWORD = "stranger", "planted-password-of-stranger"
PRINCIPAL = f"User:{USER}"
SAYS = {  # a client with a wrong password; kafka-python has no more to say without its debug log
    "librdkafka": "SASL authentication error: Authentication failed",
    "aiokafka": "SaslAuthenticationFailed: Authentication failed",
    "kafka-python": "Unable to bootstrap",
    "kafkajs": "KafkaJSSASLAuthenticationError",
    "java": "failed authentication due to: Authentication failed",
    "franz-go": "SASL_AUTHENTICATION_FAILED",
}
INVALID = '{"status":"invalid_token"}'
SAYS_OF_A_TOKEN = {
    **SAYS,
    "librdkafka": INVALID,
    "aiokafka": "KafkaConnectionError",  # it takes the refusal for the end of the authentication
    "kafkajs": "KafkaJSConnectionClosedError",  # it does not read the refusal, and goes on
    "java": f"failed authentication due to: {INVALID}",
    "franz-go": "unexpected data in oauth response",
}


class Ground(NamedTuple):
    """klamm, and the folder of its files: users, jwks.json, token, wrong.token, klamm.log, audit, traffic."""

    klamm: Klamm
    folder: Path


def with_files(folder: Path) -> dict[str, Any]:
    """The files of users and keys; the settings with them."""
    users = folder / "users"
    for name, password in ((USER, PASSWORD), (OTHER, OTHER_PASSWORD)):
        command = [str(COMMAND), "users", "set", str(users), name]
        subprocess.run(command, input=f"{password}\n", text=True, check=True, timeout=30)
    issuer = Issuer()
    issuer.write(folder)
    (folder / "token").write_text(issuer.token(USER))
    (folder / "wrong.token").write_text(Issuer().token(USER))
    return {
        "mechanisms": list(MECHANISMS),
        "users": "users",
        "jwks": "jwks.json",
        "issuer": ISSUER,
        "audience": [AUDIENCE],
        "allow": [f"User:{USER}"],
    }


@pytest.fixture(scope="module", params=["PLAINTEXT", "SASL_PLAINTEXT"])
def ground(
    request: pytest.FixtureRequest,
    kafka: Cluster,
    inside: Namespace,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Ground]]:
    folder, listener = tmp_path_factory.mktemp(request.param), request.param
    cluster: dict[str, Any] = {"bootstrap": kafka.bootstrap(listener), "listen_sasl": with_files(folder)}
    if listener != "PLAINTEXT":
        (folder / "password").write_text("alice-secret\n")
        own = {"mechanism": "SCRAM-SHA-256", "username": "alice", "password_file": "password"}
        cluster |= {"sasl": own, "map": dict(each.split("=") for each in kafka.maps(listener))}
    settings = {"clusters": [cluster], "capture": str(folder / "traffic"), "audit": str(folder / "audit")}
    (folder / "klamm.yaml").write_text(json.dumps(settings))
    options = ["--config", str(folder / "klamm.yaml"), "--log", "all"]
    with klamm_in_front_of(
        kafka.bootstrap(listener),
        inside.host,
        folder / "klamm.log",
        *options,
        foreseen=["client_sasl_failed"],
    ) as klamm:
        yield listener, Ground(klamm, folder)


def credentials(folder: Path, mechanism: str, wrong: bool = False) -> dict[str, Any]:
    """The settings of a client."""
    if mechanism == "OAUTHBEARER":
        return {"token": str(folder / ("wrong.token" if wrong else "token"))}
    return {"mechanism": mechanism, "username": USER, "password": WRONG if wrong else PASSWORD}


def produce_and_consume(
    client: str, klamm: Klamm, topic: str, who: dict[str, Any], inside: Namespace, folder: Path
) -> None:
    """The client gets all records that it has sent."""
    if client == "franz-go":
        driver, log = DRIVERS[client], folder / "franz-go.log"
        driver.run(klamm.bootstrap, "produce", topic, log=log, inside=inside, n=10, **who)
        read = driver.run(klamm.bootstrap, "consume", topic, log=log, inside=inside, group=topic, n=10, **who)
        assert sorted(int(event["value"]) for event in read if event["event"] == "record") == list(range(10))
        return
    settings = {"security": "SASL_PLAINTEXT", "topic": topic, "count": COUNT, **who}
    actions = [{"do": "produce", **settings}, {"do": "consume", "group": topic, **settings}]
    lines = programs.results(inside.run(*programs.command(client, klamm.bootstrap, *actions)))
    assert lines[1]["digest"] == records.digest(records.expected(topic, "seed", range(COUNT)))


@pytest.mark.sampled(16)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_client_authenticates_with_klamm(
    client: str, mechanism: str, ground: tuple[str, Ground], inside: Namespace, kafka: Cluster, tmp_path: Path
) -> None:
    listener, (klamm, folder) = ground
    topic = f"with-klamm-{listener}-{mechanism}-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    produce_and_consume(client, klamm, topic, credentials(folder, mechanism), inside, tmp_path)
    told = (line for line in logged(folder / "klamm.log") if topic in line.get("topics", {}))
    assert {line.get("principal") for line in told} == {PRINCIPAL}


def logged(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]


def failing(client: str, klamm: Klamm, who: dict[str, Any], inside: Namespace, folder: Path) -> str:
    """The words of a client that is refused."""
    log = folder / "client.log"
    if client == "franz-go":
        driver = DRIVERS[client]
        events = driver.run(
            klamm.bootstrap, "produce", "never", log=log, inside=inside, n=1, timeout_ms=4000, **who
        )
        return log.read_text() + json.dumps(events)
    action = {"do": "produce", "topic": "never", "count": 1, "timeout_s": 4, "security": "SASL_PLAINTEXT"}
    process = inside.start(log, *programs.command(client, klamm.bootstrap, {**action, **who}))
    wait_for(lambda: not process.running, client, timeout_s=90)
    return log.read_text()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_a_client_that_is_refused_says_that_it_could_not_authenticate(
    client: str, mechanism: str, ground: tuple[str, Ground], inside: Namespace, tmp_path: Path
) -> None:
    _, (klamm, folder) = ground
    before = outcomes(klamm)["wrong_credentials"]
    said = failing(client, klamm, credentials(folder, mechanism, wrong=True), inside, tmp_path)
    assert (SAYS_OF_A_TOKEN if mechanism == "OAUTHBEARER" else SAYS)[client] in said
    assert outcomes(klamm)["wrong_credentials"] > before


def outcomes(klamm: Klamm) -> dict[str, int]:
    found = {"wrong_credentials": 0, "not_allowed": 0, "success": 0}
    for row in klamm.counters()["client_authentications"]:
        found[row["outcome"]] = found.get(row["outcome"], 0) + row["count"]
    return found


def test_a_user_that_may_not_use_the_cluster_is_told_so(
    ground: tuple[str, Ground], inside: Namespace, tmp_path: Path
) -> None:
    _, (klamm, _) = ground
    who = {"mechanism": "SCRAM-SHA-256", "username": OTHER, "password": OTHER_PASSWORD}
    said = failing("librdkafka", klamm, who, inside, tmp_path)
    assert f"User:{OTHER} may not use this cluster" in said
    assert outcomes(klamm)["not_allowed"] > 0


def test_what_clients_prove_themselves_with_is_nowhere(
    ground: tuple[str, Ground], inside: Namespace, tmp_path: Path
) -> None:
    """Not in the log, the audit log, the capture, metrics and the answers of the admin API."""
    _, (klamm, folder) = ground
    for wrong in (False, True):
        failing("librdkafka", klamm, credentials(folder, "PLAIN", wrong), inside, tmp_path)
    failing("librdkafka", klamm, credentials(folder, "OAUTHBEARER"), inside, tmp_path)
    wait_for(lambda: b"authentication" in (folder / "audit").read_bytes(), "the audit log", [klamm.process])
    users = [line.split()[2] for line in (folder / "users").read_text().splitlines()[2:]]
    keys = [part.partition("=")[2] for each in users for part in each.split(",")[1:3]]
    told = {
        "log": (folder / "klamm.log").read_bytes(),
        "audit log": (folder / "audit").read_bytes(),
        "capture": b"".join(each.read_bytes() for each in (folder / "traffic").iterdir()),
        **{path: klamm.get(path).encode() for path in PATHS},
    }
    token = (folder / "token").read_text()
    for secret in (PASSWORD, WRONG, OTHER_PASSWORD, token, token.rpartition(".")[2], *keys):
        assert [where for where, content in told.items() if secret.encode() in content] == []
    assert PRINCIPAL.encode() in told["log"]
    assert PRINCIPAL.encode() in told["audit log"]


PATHS = ("/metrics", "/v1/counters", "/v1/connections", "/v1/exchanges", "/v1/config", "/v1/clusters")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("client", "mechanism"),
    [
        *product(["java", "librdkafka"], ["PLAIN", "SCRAM-SHA-512"]),
        ("kafkajs", "SCRAM-SHA-512"),
    ],
)
def test_a_client_authenticates_again_on_its_connections(
    client: str, mechanism: str, kafka: Cluster, inside: Namespace, tmp_path: Path
) -> None:
    """The client sends for several sessions, and none of its records fails."""
    topic = f"again-{mechanism}-{client}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    settings = with_files(tmp_path) | {"max_reauth_s": "2s"}
    cluster = {"bootstrap": kafka.bootstrap(), "listen_sasl": settings}
    (tmp_path / "klamm.yaml").write_text(json.dumps({"clusters": [cluster]}))
    options = ["--config", str(tmp_path / "klamm.yaml"), "--log", "SaslAuthenticate"]
    with klamm_in_front_of(kafka.bootstrap(), inside.host, tmp_path / "klamm.log", *options) as klamm:
        who = credentials(tmp_path, mechanism)
        action = {"do": "produce", "topic": topic, "count": 1200, "per_s": 100, **who}
        action |= {"security": "SASL_PLAINTEXT"}
        [line] = programs.results(inside.run(*programs.command(client, klamm.bootstrap, action)))
        assert (line["acknowledged"], line["failed"]) == (1200, [])
        again = [each for each in logged(tmp_path / "klamm.log") if each.get("api") == "SaslAuthenticate"]
        each_time = 1 if mechanism == "PLAIN" else 2
        assert max(Counter(each["connection_id"] for each in again).values()) >= 2 * each_time
        assert all(each["origin"] == "klamm" and not each.get("errors") for each in again)
        rows = klamm.counters()["closed"]
        assert [row for row in rows if row["reason"] == "its SASL authentication failed"] == []
