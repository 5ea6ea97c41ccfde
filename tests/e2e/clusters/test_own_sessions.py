"""Brokers that limit sessions: klamm authenticates itself again, or lets the clients do so."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.brokers import certificates, tokens
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, wait_for
from tests.clients import programs, records
from tests.clients.drivers import DRIVERS
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, Klamm, klamm_in_front_of
from tests.fakes import tls
from tests.fakes.oidc import Oidc

pytestmark = pytest.mark.brokers

SESSION_MS = 4000
PER_S = 30  # librdkafka has three times as many
COUNTS = {"librdkafka": 500, "java": 500, "franz-go": 500}  # for four sessions
TOKEN_S = 12
LONG_TOKEN_S = 60  # a program starts slowly on a busy machine, and sessions are short
SECRET = "alice-secret"
ROOT = Path(__file__).resolve().parents[3]
ONE = (
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor",
    "share.coordinator.state.topic.min.isr",
)


class Limited(NamedTuple):
    """A broker whose sessions end, and the folder with the key of its tokens."""

    kafka: Cluster
    keys: Path


Sasl = Callable[[Limited, Path], AbstractContextManager[str]]


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Limited]:
    keys = tmp_path_factory.mktemp("keys")
    tokens.make_key(keys)
    settings = {
        **dict.fromkeys(ONE, "1"),
        "connections.max.reauth.ms": str(SESSION_MS),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        **tokens.broker_settings(keys, "SASL_PLAINTEXT"),
        **tokens.broker_settings(keys, "SASL_SSL"),
    }
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.jwks_url(keys)}"
    listeners = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL")
    folder = tmp_path_factory.mktemp("limited")
    with kraft_cluster(folder, (1,), listeners, settings, jvm_options=(allowed,)) as cluster:
        yield Limited(cluster, keys)


def password(mechanism: str) -> Sasl:
    """klamm has a user and a password."""

    @contextmanager
    def written(limited: Limited, folder: Path) -> Iterator[str]:
        (folder / "password").write_text(SECRET)
        yield f"mechanism: {mechanism}, username: alice, password_file: password"

    return written


@contextmanager
def program(limited: Limited, folder: Path) -> Iterator[str]:
    """klamm asks a program for tokens."""
    code = "import sys, pathlib; from tests.brokers import tokens\n"
    code += f"print(tokens.token(pathlib.Path({str(limited.keys)!r}), 'alice', {LONG_TOKEN_S}))\n"
    (folder / "token.py").write_text(f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}")
    yield f"mechanism: OAUTHBEARER, token_command: [{sys.executable}, {folder}/token.py]"


@contextmanager
def server(limited: Limited, folder: Path) -> Iterator[str]:
    """klamm asks an OIDC server for tokens, over TLS."""
    (folder / "secret").write_text(SECRET)

    def token() -> str:
        return tokens.token(limited.keys, "alice", TOKEN_S)

    with Oidc(token, "klamm", SECRET, TOKEN_S).in_a_thread(tls.make(folder)) as oidc:
        yield (
            f"mechanism: OAUTHBEARER, token_endpoint_url: '{oidc.url}', client_id: klamm, "
            "client_secret_file: secret, scope: kafka, token_ca: ca.pem"
        )
        asked = len(oidc.forms)
    assert 2 <= asked <= 8  # the program is there for half a minute, and a token serves for TOKEN_S


def programs_of(client: str, klamm: Klamm, topic: str) -> list[list[str]]:
    """The commands of a producer that takes its time, and of a consumer."""
    count = COUNTS[client]
    if client == "franz-go":
        driver, told = DRIVERS[client], {"n": count, "timeout_ms": 80_000}
        return [
            driver.command(klamm.bootstrap, "consume", topic, group=topic, **told),
            driver.command(klamm.bootstrap, "produce", topic, pause_ms=1000 // PER_S, **told),
        ]
    actions = [
        {"do": "consume", "topic": topic, "count": count, "group": topic},
        {"do": "produce", "topic": topic, "count": count, "per_s": PER_S},
    ]
    return [programs.command(client, klamm.bootstrap, action) for action in actions]


def judge(client: str, outputs: list[str], topic: str) -> None:
    """All records are there, and no client says an error."""
    count, lines = COUNTS[client], [programs.results(output) for output in outputs]
    if client == "franz-go":
        events = [line["event"] for each in lines for line in each]
        assert "error" not in events
        assert (events.count("record"), events.count("produced")) == (count, count)
        return
    [consumed], [produced] = lines
    assert (produced["acknowledged"], produced["failed"]) == (count, [])
    assert consumed["digest"] == records.digest(records.expected(topic, "seed", range(count)))
    said = "\n".join(outputs).lower()
    assert not any(word in said for word in ("disconnected", "authentication", "exception", "transport"))


def renewed(klamm: Klamm) -> int:
    return sum(row["count"] for row in klamm.counters()["reauthentications"])


def open_now(klamm: Klamm) -> set[int]:
    return {row["id"] for row in json.loads(klamm.get("/v1/connections"))}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("client", "listener", "sasl"),
    [
        ("librdkafka", "SASL_SSL", password("PLAIN")),
        ("franz-go", "SASL_SSL", password("SCRAM-SHA-512")),
        ("franz-go", "SASL_PLAINTEXT", program),
        ("java", "SASL_PLAINTEXT", server),
    ],
    ids=["plain", "scram", "program", "server"],
)
def test_clients_keep_their_connections_over_many_sessions(
    client: str, listener: str, sasl: Sasl, limited: Limited, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    topic = f"over-sessions-{request.node.callspec.id}"
    topics.create(limited.kafka.bootstrap(), topic, [[1]] * 3)
    to_brokers = f"{{ca: {limited.kafka.ca}}}" if listener == "SASL_SSL" else "false"
    log, file, bootstrap = tmp_path / "klamm.log", tmp_path / "klamm.yaml", limited.kafka.bootstrap(listener)
    options = "--config", str(file), "--capture", str(tmp_path / "capture"), "--capture-records", "keep"
    with ExitStack() as stack:
        own = stack.enter_context(sasl(limited, tmp_path))
        cluster = f"bootstrap: [{bootstrap}], tls: {to_brokers}, sasl: {{{own}}}"
        file.write_text(f"clusters: [{{{cluster}}}]\n")
        klamm = stack.enter_context(klamm_in_front_of(bootstrap, "127.0.0.1", log, *options))
        running: list[Process] = []
        for number, command in enumerate(programs_of(client, klamm, topic)):
            running.append(Process(command, tmp_path / f"{number}.log"))
            stack.callback(running[-1].stop)
        each = [klamm.process, *running]
        wait_for(lambda: renewed(klamm) >= len(open_now(klamm)) > 1, "sessions that are renewed", each)
        before, count = open_now(klamm), renewed(klamm)
        wait_for(lambda: renewed(klamm) >= count + 2 * len(before), "the next sessions", each)
        assert len(open_now(klamm) & before) > 1  # a client may close one for reasons of its own
        wait_for(lambda: not any(one.running for one in running), "the clients' end", timeout_s=90)
        assert {row["reason"] for row in klamm.counters()["closed"]} == {"closed by client"}
        judge(client, [one.log.read_text() for one in running], topic)
        shown = [klamm.get(path) for path in ("/metrics", "/v1/counters", "/v1/config", "/v1/connections")]
    said = b"\n".join([log.read_bytes(), *map(str.encode, shown)])
    command = [str(COMMAND), "show", str(tmp_path / "capture")]
    assert b"Produce" in subprocess.check_output([*command, "api == Produce"], timeout=60)
    own_apis = "api == SaslHandshake or api == SaslAuthenticate"
    assert subprocess.check_output([*command, own_apis], timeout=60) == b""
    secrets = [SECRET, "Bearer", "eyJ"]  # the latter: the beginning of every JWT
    assert [secret for secret in secrets if secret.encode() in said] == []


PASSING = {  # client -> the mechanism of its long session
    "librdkafka": "OAUTHBEARER",
    "java": "SCRAM-SHA-256",
    "franz-go": "PLAIN",
    "kafkajs": "SCRAM-SHA-512",
    "kafka-python": "PLAIN",
    "aiokafka": "PLAIN",
}
ANEW = "aiokafka"  # authenticates never again: its connections end with their sessions
SIDES = [(client, broker) for client in ("plain", "TLS") for broker in ("plain", "TLS")]
Sides = tuple[str, str]


class Passing(NamedTuple):
    """A klamm without credentials for each combination of TLS, and the folder with its logs and files."""

    klamms: dict[Sides, Klamm]
    folder: Path

    def log(self, sides: Sides) -> Path:
        return self.folder / f"{'-'.join(sides)}.log"

    def settings(self, mechanism: str, sides: Sides, token: str = "token") -> dict[str, str]:
        """Those of a client."""
        trusted = {"ca": str(self.folder / "ca.pem")} if sides[0] == "TLS" else {}
        if mechanism == "OAUTHBEARER":
            return {"token": str(self.folder / token), **trusted}
        return {"mechanism": mechanism, "username": "alice", "password": SECRET, **trusted}


@pytest.fixture(scope="module")
def passing(
    limited: Limited, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Passing]:
    found = Passing({}, tmp_path_factory.mktemp("passing"))
    (found.folder / "token").write_text(tokens.token(limited.keys, "alice", 3600))
    (found.folder / "wrong.token").write_text(tokens.token(limited.keys, "alice", 3600, aud="others"))
    certificates.make(found.folder, [inside.host])
    with ExitStack() as stack:
        for sides in SIDES:
            bootstrap = limited.kafka.bootstrap({"plain": "SASL_PLAINTEXT", "TLS": "SASL_SSL"}[sides[1]])
            options = ["--log", "SaslHandshake"]
            if sides[0] == "TLS":
                options += ["--listen-tls-cert", str(found.folder / "broker.pem")]
            if sides[1] == "TLS":
                options += ["--upstream-tls", "--upstream-ca", str(limited.kafka.ca)]
            started = klamm_in_front_of(bootstrap, inside.host, found.log(sides), *options, ready=False)
            found.klamms[sides] = stack.enter_context(started)
            found.klamms[sides].wait_until_listening()
        yield found


def commands_of(
    client: str, bootstrap: str, topic: str, who: dict[str, str], count: int, per_s: int = 0
) -> list[list[str]]:
    """Of a producer, and of a consumer."""
    if client == "franz-go":
        driver, told = DRIVERS[client], {"n": count, "timeout_ms": 80_000, **who}
        pace = {"pause_ms": 1000 // per_s} if per_s else {}
        return [
            driver.command(bootstrap, "produce", topic, **told, **pace),
            driver.command(bootstrap, "consume", topic, **told, group=topic),
        ]
    security = "SASL_SSL" if "ca" in who else "SASL_PLAINTEXT"
    action = {"topic": topic, "count": count, "security": security, **who}
    doing = {"do": "produce", "per_s": per_s}, {"do": "consume", "group": topic}
    return [programs.command(client, bootstrap, {**action, **each}) for each in doing]


def count_of(output: str) -> int:
    """How many records a producer or a consumer has told of."""
    lines = programs.results(output)
    if "event" in lines[0]:
        return sum(line["event"] in {"produced", "record"} for line in lines)
    [line] = lines
    return int(line["acknowledged" if line["do"] == "produce" else "count"])


@pytest.mark.sampled(6)
@pytest.mark.parametrize("client", PASSING)
@pytest.mark.parametrize(
    ("mechanism", "sides"), [("SCRAM-SHA-512", ("plain", "TLS")), ("OAUTHBEARER", ("TLS", "TLS"))]
)
def test_what_a_client_authenticates_with_passes_through(
    client: str, mechanism: str, sides: Sides, passing: Passing, limited: Limited, inside: Namespace
) -> None:
    """PLAIN and SCRAM-SHA-256: tests/e2e/test_security.py and tests/e2e/test_listen_tls.py."""
    topic = f"passing-{mechanism}-{client}"
    topics.create(limited.kafka.bootstrap(), topic, [[1]] * 3)
    who, bootstrap = passing.settings(mechanism, sides), passing.klamms[sides].bootstrap
    commands = commands_of(client, bootstrap, topic, who, 20)
    assert [count_of(inside.run(*command)) for command in commands] == [20, 20]


def test_kafkajs_does_not_read_that_its_token_is_refused_not_by_kafka_either(
    passing: Passing, limited: Limited, inside: Namespace
) -> None:
    """It goes on as if it were authenticated, until its connection ends."""
    sides = ("plain", "plain")
    who = passing.settings("OAUTHBEARER", sides, "wrong.token")
    action = {"do": "produce", "topic": "never", "count": 1, "timeout_s": 4, "security": "SASL_PLAINTEXT"}
    through = programs.command("kafkajs", passing.klamms[sides].bootstrap, {**action, **who})
    direct = programs.command("kafkajs", limited.kafka.bootstrap("SASL_PLAINTEXT"), {**action, **who})
    answers = [inside.run(*through), subprocess.check_output(direct, text=True, timeout=60)]
    assert [programs.results(each)[0]["failed"] for each in answers] == [[0], [0]]


def authentications(log: Path) -> dict[str, int]:
    """How often the connection that did it most has authenticated itself, by the clients' names."""
    found: dict[str, Counter[int]] = {}
    for line in map(json.loads, (text for text in log.read_text().splitlines() if text.startswith("{"))):
        if line.get("api") == "SaslHandshake":
            client = line["client_id"].rpartition("-")[0]
            found.setdefault(client, Counter())[line["connection_id"]] += 1
    return {client: max(times.values()) for client, times in found.items()}


@pytest.mark.parametrize(
    "combinations",
    [
        pytest.param([("plain", "plain"), ("TLS", "TLS")], id="same"),
        pytest.param([("plain", "TLS"), ("TLS", "plain")], id="different", marks=pytest.mark.long),
    ],
)
def test_clients_authenticate_again_with_brokers_that_limit_sessions(
    combinations: list[Sides], passing: Passing, limited: Limited, inside: Namespace, tmp_path: Path
) -> None:
    """All clients produce side by side for six sessions, through two combinations of TLS: a client that
    starts late makes up for the records, not for the sessions.
    """
    counts = {client: 2160 if client == "librdkafka" else 720 for client in PASSING}
    topic = f"limited-{'-'.join(combinations[0])}"
    topics.create(limited.kafka.bootstrap(), topic, [[1]])
    running: dict[tuple[str, Sides | None], Process] = {}

    def command(client: str, bootstrap: str, sides: Sides) -> list[str]:
        who = passing.settings(PASSING[client], sides)
        return commands_of(client, bootstrap, topic, who, counts[client], PER_S)[0]

    try:
        for client, sides in product(PASSING, combinations):
            log = tmp_path / f"{client}-{'-'.join(sides)}.log"
            running[client, sides] = inside.start(
                log, *command(client, passing.klamms[sides].bootstrap, sides)
            )
        direct = command(ANEW, limited.kafka.bootstrap("SASL_PLAINTEXT"), ("plain", "plain"))
        running[ANEW, None] = Process(direct, tmp_path / "direct.log")
        wait_for(lambda: not any(each.running for each in running.values()), "the clients", timeout_s=120)
    finally:
        for each in running.values():
            each.stop()
    said = {key: each.log.read_text() for key, each in running.items()}
    assert {key: count_of(text) for key, text in said.items()} == {key: counts[key[0]] for key in said}
    for sides in combinations:
        times = authentications(passing.log(sides))
        assert {client for client in PASSING if times[client] >= 3} == set(PASSING) - {ANEW}, times
        assert times[ANEW] == 1
        assert "KafkaConnectionError: Connection at" in said[ANEW, sides]
    assert "KafkaConnectionError: Connection at" in said[ANEW, None]  # as without klamm
