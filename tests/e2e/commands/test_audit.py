"""The audit log of `klamm run`: each event as it really happens before real brokers, and no secret in it."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import pytest

from klamm.client import Klamm, Refused
from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import wait_for
from tests.e2e.conversation import Conversation
from tests.e2e.klamm_process import klamm_in_front_of
from tests.e2e.test_secrets import (
    CONFIGURED,
    PASSWORDS,
    SALT,
    SALTED,
    authenticate,
    found_in,
    log_in,
    with_topic,
)

pytestmark = pytest.mark.brokers

MADE = "made-and-audited"
TOKEN, WRONG_TOKEN = "planted-token-for-all", "planted-wrong-token"
FORGED = 'a"b\n{"event":"started","outcome":"success"}\u2028\x1b[2J'
ALWAYS = ["time", "event", "outcome", "cluster", "address", "principal", "client_id"]
RULE = {"name": "refuse-creation", "api": "CreateTopics", "topic": "refused-*", "error": "POLICY_VIOLATION"}


class Kept(NamedTuple):
    """The audit file of a klamm that has ended, and its lines."""

    file: Path
    mode: int
    lines: list[dict[str, Any]]

    def of(self, event: str, **fields: Any) -> list[dict[str, Any]]:
        return [
            line
            for line in self.lines
            if line["event"] == event and all(line.get(name) == value for name, value in fields.items())
        ]

    def one(self, event: str, **fields: Any) -> dict[str, Any]:
        [line] = self.of(event, **fields)
        return line


def by_frames(talk: Conversation, user: str, password: str) -> int:
    """Authenticate by SaslAuthenticate; the error code."""
    talk.ask("SaslHandshake", 1, {"mechanism": "PLAIN"})
    token = b"\0".join([b"", user.encode(), password.encode()])
    return int(talk.ask("SaslAuthenticate", 2, {"auth_bytes": token})["error_code"])


def administrate(talk: Conversation) -> None:
    """Requests with secrets among their fields, and one that fails."""
    user = {"name": "mallory", "mechanism": 1, "iterations": 4096, "salt": SALT, "salted_password": SALTED}
    talk.ask("AlterUserScramCredentials", 0, {"deletions": [], "upsertions": [user]})
    config = {"name": "retention.ms", "value": CONFIGURED}
    made = {"name": MADE, "num_partitions": 1, "replication_factor": 1, "configs": [config]}
    talk.ask("CreateTopics", 5, {"topics": [made], "timeout_ms": 30_000})
    talk.ask("CreateTopics", 5, {"topics": [made], "timeout_ms": 30_000})
    change = {"name": "retention.ms", "config_operation": 0, "value": CONFIGURED}
    resource = {"resource_type": 2, "resource_name": MADE, "configs": [change]}
    talk.ask("IncrementalAlterConfigs", 1, {"resources": [resource]})
    acl = {"resource_type": 2, "resource_name": FORGED, "resource_pattern_type": 3, "principal": "User:bob"}
    acl |= {"host": "*", "operation": 3, "permission_type": 3}
    talk.ask("CreateAcls", 3, {"creations": [acl]})
    talk.ask("DescribeConfigs", 4, {"resources": [{"resource_type": 2, "resource_name": MADE}]})
    talk.ask("DeleteTopics", 5, {"topic_names": [MADE], "timeout_ms": 30_000})


def over_http(admin: str) -> None:
    """A rule by hand, and callers that are refused."""
    owner = Klamm(admin, TOKEN, "ada")
    owner.add_rule(RULE)
    for token in (None, WRONG_TOKEN):
        with pytest.raises(Refused):
            Klamm(admin, token).rules()
    with pytest.raises(Refused):
        owner.remove_rule("no-such-rule")
    owner.rules()
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Klamm-User": 'ada" {"event":"started"}'}
    with urlopen(Request(f"http://{admin}/v1/capture", method="DELETE", headers=headers), timeout=10):
        pass


@pytest.fixture(scope="module")
def kept(kafka: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "token").write_text(TOKEN)
    (folder / "rules.yaml").write_text("rules: []\n")
    file = folder / "audit.log"
    options = ["--audit", str(file), "--admin-token-file", str(folder / "token")]
    options += ["--rules", str(folder / "rules.yaml")]
    bootstrap = kafka.bootstrap("SASL_PLAINTEXT")
    with_topic(kafka)

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in file.read_bytes().splitlines()]

    def seen(event: str, **fields: Any) -> None:
        def there() -> bool:
            found = Kept(file, 0, lines())
            return bool(found.of(event, **fields))

        wait_for(there, f"the line {event}", [klamm.process])

    with klamm_in_front_of(
        bootstrap, inside.host, folder / "klamm.log", *options, ready=False, authorization=f"Bearer {TOKEN}"
    ) as klamm:
        klamm.wait_until_listening()
        authenticate(inside, klamm)
        with Conversation(klamm.address) as talk:
            log_in(talk, "bob")
        with Conversation(klamm.address) as talk:
            assert by_frames(talk, "bob", "planted-wrong-password")
        over_http(klamm.admin)
        with Conversation(klamm.address) as talk:
            assert by_frames(talk, "bob", PASSWORDS["bob"]) == 0
            administrate(talk)
            for name in ("refused-1", "refused-2"):
                made = {"name": name, "num_partitions": 1, "replication_factor": 1}
                answer = talk.ask("CreateTopics", 5, {"topics": [made], "timeout_ms": 30_000})
                assert answer["topics"][0]["error_code"] == 44
        (folder / "rules.yaml").write_text("rules: [{api: Nothing}]\n")
        seen("rules_rejected")
        (folder / "rules.yaml").write_text("rules: [{api: Heartbeat, delay: 1ms}]\n")
        seen("rules_loaded", rules=1)
        (folder / "token").write_text("planted-next-token")
        seen("token_loaded")
        klamm.authorization = "Bearer planted-next-token"
    return Kept(file, stat.S_IMODE(os.stat(file).st_mode), lines())


def test_every_line_has_the_fields_of_all_and_a_time(kept: Kept) -> None:
    for line in kept.lines:
        assert list(line)[:7] == ALWAYS
        when = datetime.fromisoformat(line["time"])
        assert when.tzinfo == UTC
        assert datetime.now(UTC) - timedelta(minutes=10) < when <= datetime.now(UTC)


def test_the_file_is_for_its_owner(kept: Kept) -> None:
    assert kept.mode == 0o600


def test_klamms_start_and_end_are_the_first_and_the_last_line(kept: Kept) -> None:
    assert [kept.lines[0]["event"], kept.lines[-1]["event"]] == ["started", "stopped"]
    assert kept.one("started")["clusters"] == ["kafka"]
    assert kept.one("stopping")["reason"].startswith("SIGINT")


def test_connections_have_their_address_listener_and_end(kept: Kept) -> None:
    opened = {line["connection_id"]: line for line in kept.of("connected")}
    closed = {line["connection_id"]: line for line in kept.of("disconnected")}
    assert opened.keys() == closed.keys()
    assert len(opened) >= 5
    for number, line in closed.items():
        assert (line["address"], line["cluster"]) == (opened[number]["address"], "kafka")
        assert line["reason"]
    by_hand = [line for line in closed.values() if line["client_id"] == "by-hand"]
    assert {line["reason"] for line in by_hand} <= {"closed by client", "closed by broker", "reset by broker"}
    assert {"librdkafka", "by-hand"} <= {str(line["client_id"]).split("#")[0] for line in closed.values()} | {
        "librdkafka"
    }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_an_authentication_has_its_user_and_mechanism(kept: Kept, mechanism: str) -> None:
    found = kept.of("authentication", mechanism=mechanism, outcome="success", user="alice")
    assert found
    assert {line["principal"] for line in found} == {"User:alice"}


def test_a_failed_authentication_has_the_error(kept: Kept) -> None:
    line = kept.one("authentication", user="bob", outcome="SASL_AUTHENTICATION_FAILED")
    assert (line["mechanism"], line["principal"], line["client_id"]) == ("PLAIN", None, "by-hand")
    assert kept.of("authentication", user="alice", outcome="SASL_AUTHENTICATION_FAILED")


def test_the_outcome_of_raw_tokens_is_unknown(kept: Kept) -> None:
    line = kept.one("authentication", outcome="unknown")
    assert (line["mechanism"], line["user"]) == ("PLAIN", None)


def test_administrative_requests_have_their_names_and_outcome(kept: Kept) -> None:
    found = kept.of("request", principal="User:bob")
    assert {line["client_id"] for line in found} == {"by-hand"}
    told = [(line["api"], line["outcome"]) for line in found]
    assert told[:6] == [
        ("AlterUserScramCredentials", "success"),
        ("CreateTopics", "success"),
        ("CreateTopics", "TOPIC_ALREADY_EXISTS"),
        ("IncrementalAlterConfigs", "success"),
        ("CreateAcls", "SECURITY_DISABLED"),
        ("DeleteTopics", "success"),
    ]
    asked = [line["asked"] for line in found]
    assert asked[0] == {
        "deletions": [],
        "upsertions": [{"name": "mallory", "mechanism": "SCRAM-SHA-256", "iterations": 4096}],
    }
    made = {"name": MADE, "num_partitions": 1, "replication_factor": 1, "configs": [{"name": "retention.ms"}]}
    assert asked[1] == {"topics": [made], "validate_only": False}
    assert found[2]["errors"] == {"TOPIC_ALREADY_EXISTS": 1}
    changed = [{"name": "retention.ms", "config_operation": "SET"}]
    assert asked[3]["resources"] == [{"resource_type": "TOPIC", "resource_name": MADE, "configs": changed}]
    [acl] = asked[4]["creations"]
    assert (acl["operation"], acl["permission_type"], acl["principal"]) == ("READ", "ALLOW", "User:bob")
    assert asked[5] == {"topic_names": [MADE]}


def test_a_rule_that_acted_is_told_once_on_a_connection_and_counted_at_its_end(kept: Kept) -> None:
    line = kept.one("rule_acted", rule=RULE["name"])
    assert (line["actions"], line["api"], line["principal"]) == (["error"], "CreateTopics", "User:bob")
    number = line["connection_id"]
    assert kept.one("disconnected", connection_id=number)["rules"] == {RULE["name"]: 2}
    refused = kept.of("request", outcome="POLICY_VIOLATION")
    assert [each["asked"]["topics"][0]["name"] for each in refused] == ["refused-1", "refused-2"]


def test_changes_over_the_admin_api_have_caller_and_outcome(kept: Kept) -> None:
    made = kept.one("admin_request", method="POST", path="/v1/rules")
    assert (made["outcome"], made["status"], made["principal"], made["role"]) == (
        "success",
        201,
        "token",
        "full",
    )
    assert (made["address"], made["named"], made["sent"]["name"]) == ("127.0.0.1", "ada", RULE["name"])
    assert kept.one("admin_request", path="/v1/rules/no-such-rule")["outcome"] == "refused"
    refused = kept.of("admin_request", method="GET", path="/v1/rules")
    assert [(line["outcome"], line["status"], line["principal"]) for line in refused] == [
        ("refused", 401, None)
    ] * 2


def test_reloads_are_there(kept: Kept) -> None:
    assert kept.one("rules_rejected")["outcome"] == "failure"
    assert kept.of("rules_loaded", outcome="success", rules=1)
    assert kept.one("token_loaded")["outcome"] == "success"


def test_no_secret_is_in_it(kept: Kept) -> None:
    data = kept.file.read_bytes()
    assert found_in(data) == []
    for planted in (TOKEN, WRONG_TOKEN, "planted-next-token", "planted-wrong-password", *PASSWORDS.values()):
        assert planted.encode() not in data


def test_no_text_of_clients_forges_a_line(kept: Kept) -> None:
    data = kept.file.read_bytes()
    assert len(data.decode().splitlines()) == len(data.split(b"\n")) - 1 == len(kept.lines)
    assert b"\x1b" not in data
    assert len(kept.of("started")) == 1
    [acl] = kept.one("request", api="CreateAcls")["asked"]["creations"]
    assert acl["resource_name"] == FORGED
    assert (
        kept.one("admin_request", method="DELETE", path="/v1/capture")["named"] == 'ada" {"event":"started"}'
    )


def test_a_full_disk_stops_no_traffic_and_is_counted(
    kafka: Cluster, inside: Namespace, tmp_path: Path
) -> None:
    log = tmp_path / "klamm.log"
    with klamm_in_front_of(kafka.bootstrap(), inside.host, log, "--audit", "/dev/full") as klamm:
        for _ in range(3):
            with Conversation(klamm.address) as talk:
                assert talk.ask("DeleteGroups", 2, {"groups_names": ["none"]})["results"]

        def lost() -> bool:
            with Conversation(klamm.address):
                pass
            return bool(klamm.counters()["audit_dropped"]) and "audit_dropped" in log.read_text()

        wait_for(lost, "the number of lost lines", [klamm.process])
        assert "klamm_audit_lines_dropped_total 0" not in klamm.get("/metrics")
        assert "the audit file /dev/full takes no lines: No space left on device" in log.read_text()
