"""Secrets go through klamm to real brokers, and are nowhere in the capture, nor in what is made of it."""

from __future__ import annotations

import json
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from pyarrow import parquet

from klamm.captures.storage.reading import read
from klamm.decoders.records import Batch, Record, write
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.wire import receive_exactly
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.conversation import Conversation
from tests.e2e.klamm_process import COMMAND, Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

TOPIC = "with-secrets"
MADE = "made-with-secrets"
PASSWORDS = {"alice": "alice-secret", "bob": "bob-secret"}
SALT, SALTED = b"planted-salt-of-mallory", b"planted-salted-password-of-mallory"
CONFIGURED = "98765432198765"  # retention.ms
RECORD = b"planted-content-of-a-record"
WRONG = "planted-wrong-password"
SECRETS = {
    "a password of PLAIN": b"alice-secret",
    "a password in a raw token": b"bob-secret",
    "a wrong password": WRONG.encode(),
    "a message of SCRAM": b"n=alice,r=",
    "a salt": SALT,
    "a salted password": SALTED,
    "a configured value": CONFIGURED.encode(),
    "a record": RECORD,
}
EXPORTS = {
    "client.pcapng": ("--seen-by", "client"),
    "broker.pcapng": ("--seen-by", "broker"),
    "values.jsonl": ("--bodies", "values"),
    "raw.jsonl": ("--bodies", "raw"),
    "exchanges.parquet": (),
}


@pytest.fixture(scope="module")
def capture(kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("secrets")
    log, capture = folder / "klamm.log", folder / "capture"
    with_topic(kafka)
    options = "--capture", str(capture)
    bootstrap = kafka.bootstrap("SASL_PLAINTEXT")
    with klamm_in_front_of(bootstrap, inside.host, log, *options, ready=False) as klamm:
        klamm.wait_until_listening()
        authenticate(inside, klamm)
        with Conversation(klamm.address) as talk:
            log_in(talk, "bob")
            plant(talk)
    return capture


def with_topic(kafka: Cluster) -> None:
    """The topic of all tests with secrets is there."""
    if TOPIC not in AdminClient({"bootstrap.servers": kafka.bootstrap()}).list_topics(timeout=10).topics:
        topics.create(kafka.bootstrap(), TOPIC, [[1]])


def authenticate(inside: Namespace, klamm: Klamm) -> None:
    """By both mechanisms, and in vain."""
    who = {"security": "SASL_PLAINTEXT", "username": "alice", "password": PASSWORDS["alice"]}
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        action = {"do": "produce", "topic": TOPIC, "count": 5, "mechanism": mechanism, **who}
        inside.run(*programs.command("librdkafka", klamm.bootstrap, action))
    wrong = {
        "do": "administrate",
        "topic": "never",
        "timeout_s": 5,
        "mechanism": "PLAIN",
        **who,
        "password": WRONG,
    }
    with pytest.raises(AssertionError):
        inside.run(*programs.command("librdkafka", klamm.bootstrap, wrong))


def log_in(talk: Conversation, user: str) -> None:
    """With raw tokens, as old clients do."""
    talk.ask("SaslHandshake", 0, {"mechanism": "PLAIN"})
    token = b"\0".join([b"", user.encode(), PASSWORDS[user].encode()])
    talk.socket.sendall(len(token).to_bytes(4, "big") + token)
    assert receive_exactly(talk.socket, 4) == bytes(4)


def plant(talk: Conversation) -> None:
    user = {"name": "mallory", "mechanism": 1, "iterations": 4096, "salt": SALT, "salted_password": SALTED}
    talk.ask("AlterUserScramCredentials", 0, {"deletions": [], "upsertions": [user]})
    config = {"name": "retention.ms", "value": CONFIGURED}
    made = {"name": MADE, "num_partitions": 1, "replication_factor": 1, "configs": [config]}
    talk.ask("CreateTopics", 5, {"topics": [made], "timeout_ms": 30_000})
    talk.ask("DescribeConfigs", 4, {"resources": [{"resource_type": 2, "resource_name": MADE}]})
    batch = write(Batch(), [Record(0, key=RECORD, value=RECORD * 3, headers=((RECORD.decode(), RECORD),))])
    parts = [{"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}]
    talk.ask("Produce", 9, {"acks": -1, "timeout_ms": 10_000, "topic_data": parts})


def found_in(data: bytes) -> list[str]:
    """The secrets in it, as they are or in base64."""
    return [what for what, secret in SECRETS.items() if any(form in data for form in forms(secret))]


def forms(secret: bytes) -> Iterator[bytes]:
    """As it is, and in base64 wherever it begins, without the letters that its neighbours have a part in."""
    yield secret
    for before in range(3):
        whole = b64encode(bytes(before) + secret)
        yield whole[-(-before * 8 // 6) + (before > 0) : len(whole) // 4 * 4 - 4]


def test_secrets_are_found_where_they_are() -> None:
    for what, secret in SECRETS.items():
        for around in range(3):
            data = b"x" * around + secret + b"yz"
            assert found_in(data) == found_in(b64encode(data)) == [what]


def test_they_were_said_to_the_brokers(capture: Path) -> None:
    frames = {(row.api_key, row.side) for row in read(capture) if row.kind == "frame"}
    assert {(17, "request"), (36, "request"), (51, "request"), (19, "request"), (32, "response")} <= frames
    assert {row.side for row in read(capture) if row.kind == "token"} == {"request", "response"}


def test_no_file_of_the_capture_has_them(capture: Path) -> None:
    files = [path for path in capture.rglob("*") if path.is_file()]
    assert files
    assert {path.name: found_in(path.read_bytes()) for path in files} == {path.name: [] for path in files}


def test_no_row_of_the_capture_has_them(capture: Path) -> None:
    """The columns of a segment may be compressed."""
    reading = read(capture)
    for row in reading:
        content = b"\n".join(
            [repr(row._replace(frame=None, forwarded=None)).encode(), row.frame or b"", row.forwarded or b""]
        )
        assert found_in(content) == [], row
    assert reading.problems == []


@pytest.mark.parametrize("name", EXPORTS)
def test_no_export_has_them(name: str, capture: Path, tmp_path: Path) -> None:
    file = tmp_path / name
    command = [str(COMMAND), "export", str(capture), "-o", str(file), *EXPORTS[name]]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert found_in(file.read_bytes()) == []
    if file.suffix == ".parquet":
        assert found_in(json.dumps(plain(file), default=str).encode()) == []
    if file.suffix == ".pcapng":
        output = subprocess.run(
            ["tshark", "-r", file, "-V", "-x"], check=True, capture_output=True, timeout=60
        )
        assert found_in(output.stdout) == []


def plain(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    return found


def test_klamm_show_does_not_tell_them(capture: Path) -> None:
    for how in ("-v", "-x", "--stats"):
        output = subprocess.run(
            [str(COMMAND), "show", str(capture), how], check=True, capture_output=True, timeout=60
        )
        assert found_in(output.stdout) == []
