"""The audit log: which requests and fields are in it, and what happens where lines cannot be written."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.decoders.schema import SECRET, all_fields
from klamm.proxy.control.audit.audited_apis import AUDITED, LONGEST, MOST, WORDS, Kept
from klamm.proxy.control.audit.auditing import Auditing, Client
from klamm.proxy.control.audit.sasl_users import is_last, user_of
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.log.audit import Audit
from klamm.proxy.log.file import LogFile
from klamm.rules.engine import Engine
from klamm.rules.frame import Frame, Peer
from tests.fakes.edge import Edge, Lines, cluster
from tests.fakes.waiting import PATIENCE_S, eventually, on_uvloop

SALTED = b"planted salted password"


class Memory:
    """In place of the file. While it is not `free`, a write waits, and is `held`."""

    def __init__(self) -> None:
        self.data, self.free, self.full, self.held = b"", threading.Event(), False, False
        self.free.set()

    def write(self, data: bytes) -> None:
        self.held = not self.free.is_set()
        assert self.free.wait(PATIENCE_S)
        if self.full:
            raise OSError(28, "No space left on device")
        self.data += data

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.splitlines()]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["event"] == event]


def audited(edge: Edge) -> tuple[Memory, Audit, RuleBook]:
    """From now on."""
    engine = edge.proxied.context.engine
    assert engine is not None
    memory, book = Memory(), RuleBook(engine)
    audit = Audit(memory, edge.log)
    edge.proxied.auditing = Auditing(audit, book)
    return memory, audit, book


def test_fields_of_the_table_are_kafkas_and_none_is_a_secret() -> None:
    for name, paths in AUDITED.items():
        api = API[name]
        known = {path: field for version in api.versions for path, field in all_fields(api.request, version)}
        for path in paths.split():
            assert known[tuple(path.split("."))].mark != SECRET, (name, path)
        fields = {step for path in paths.split() for step in path.split(".")}
        assert WORDS.get(name, {}).keys() <= fields


def test_every_request_that_changes_a_cluster_is_in_the_table() -> None:
    changing = (
        "Create",
        "Delete",
        "Alter",
        "Incremental",
        "Renew",
        "Expire",
        "Update",
        "Remove",
        "Unregister",
    )
    among_brokers = {"AlterPartition", "DeleteShareGroupState", "UpdateMetadata"}
    named = {api.name for api in API if api.name.startswith(changing)}
    assert named - AUDITED.keys() == among_brokers


def test_long_lists_and_texts_are_cut_and_counted() -> None:
    kept = Kept("DeleteTopics", {"topic_names": ["t"] * (MOST + 7) + ["x" * 10_000], "timeout_ms": 1})
    assert kept.fields == {"topic_names": ["t"] * MOST}
    assert kept.left_out == 8
    (name,) = Kept("DeleteTopics", {"topic_names": ["x" * 10_000]}).fields["topic_names"]
    assert name == "x" * LONGEST + "..."


CLAIMS = base64.urlsafe_b64encode(b'{"sub":"ada"}').rstrip(b"=")


@pytest.mark.parametrize(
    ("mechanism", "sent", "user"),
    [
        ("PLAIN", b"\0alice\0alice-secret", "alice"),
        ("PLAIN", b"admin\0alice\0alice-secret", "alice"),
        ("PLAIN", b"alice-secret", None),
        ("PLAIN", b"\0a\0b\0c", None),
        ("PLAIN", b"\0\xff\0secret", None),
        ("SCRAM-SHA-256", b"n,,n=alice,r=nonce", "alice"),
        ("SCRAM-SHA-512", b"n,a=admin,n=a=2Cb=3D,r=nonce", "a,b="),
        ("SCRAM-SHA-256", b"c=biws,r=nonce,p=proof", None),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer h." + CLAIMS + b".s\x01\x01", "ada"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer opaque\x01\x01", None),
        ("OAUTHBEARER", b"\x01", None),
        ("GSSAPI", b"\x60\x82", None),
    ],
)
def test_the_user_is_named_by_the_first_message_alone(mechanism: str, sent: bytes, user: str | None) -> None:
    assert user_of(mechanism, sent) == user


def test_the_last_answer_of_each_mechanism() -> None:
    assert is_last("PLAIN", b"")
    assert is_last("OF-MY-COMPANY", b"welcome")
    assert is_last("GSSAPI", b"")
    assert not is_last("GSSAPI", b"\x60")
    assert not is_last("SCRAM-SHA-256", b"r=nonce,s=salt,i=4096")
    assert is_last("SCRAM-SHA-256", b"v=signature")
    assert is_last("OAUTHBEARER", b"")
    assert not is_last("OAUTHBEARER", b'{"status":"invalid_token"}')


@on_uvloop
async def test_a_request_whose_connection_ends_before_the_answer_is_unanswered() -> None:
    async with cluster() as (edge, [broker, *_]):
        memory, audit, _ = audited(edge)
        broker.answers.pop("DeleteGroups", None)
        client = await edge.client()
        client.send("DeleteGroups", 2, {"groups_names": ["billing"]})
        await broker.asked("DeleteGroups")
        client.transport.abort()
        await eventually(lambda: memory.of("disconnected"))
        [line] = memory.of("request")
        assert (line["outcome"], line["asked"]) == ("unanswered", {"groups_names": ["billing"]})
        audit.close()


@on_uvloop
async def test_requests_that_are_not_of_the_table_meet_no_rule() -> None:
    async with cluster() as (edge, _):
        audited(edge)
        engine = edge.proxied.context.engine
        assert engine is not None
        peer = engine.peer("kafka", "1", "127.0.0.1:1")
        for api in API:
            for side in ("request", "response"):
                met = engine.concerned(api, max(api.versions), side, peer, "client")
                wanted = side == "request" and api.name in {*AUDITED, "SaslHandshake", "SaslAuthenticate"}
                assert bool(met) is wanted, api.name


@on_uvloop
async def test_lines_that_find_no_room_are_counted_and_traffic_goes_on() -> None:
    log, memory = Lines(), Memory()
    audit = Audit(memory, log, capacity=5)
    memory.free.clear()
    audit.event("request", "success", api="held")
    await eventually(lambda: memory.held)
    for number in range(600):
        audit.event("request", "success", api=str(number))
    assert audit.dropped == 595
    assert log.of("audit_dropped")[0].level == "error"
    memory.free.set()
    await eventually(lambda: memory.of("audit_dropped"))
    audit.event("request", "success", api="after")
    audit.close()
    assert [line["api"] for line in memory.of("request")] == ["held", *map(str, range(5)), "after"]
    [told] = memory.of("audit_dropped")
    assert list(told)[:7] == ["time", "event", "outcome", "cluster", "address", "principal", "client_id"]
    assert told["dropped"] == 595


@on_uvloop
async def test_a_full_disk_is_told_in_the_log() -> None:
    log, memory = Lines(), Memory()
    memory.full = True
    audit = Audit(memory, log)
    audit.event("request", "success")
    await eventually(lambda: audit.dropped)
    memory.full = False
    audit.event("request", "success")
    audit.close()
    assert log.of("audit_dropped")
    assert memory.of("request")


def test_the_file_is_opened_anew_after_a_rotation_and_is_for_its_owner(tmp_path: Path) -> None:
    now = [0.0]
    file = tmp_path / "audit.log"
    output = LogFile(file, clock=lambda: now[0])
    output.write(b"one\n")
    file.rename(tmp_path / "audit.log.1")
    now[0] += 5
    output.write(b"two\n")
    output.close()
    assert (tmp_path / "audit.log.1").read_bytes() == b"one\n"
    assert file.read_bytes() == b"two\n"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_request_that_does_not_decode_is_told_without_its_fields() -> None:
    memory = Memory()
    audit = Audit(memory, Lines())
    engine = Engine(0)
    auditing = Auditing(audit, RuleBook(engine))
    auditing.clients[7] = Client(7, "kafka", "1", "127.0.0.1:1", None)
    peer = Peer("kafka", "1", "127.0.0.1:1", "", 7)
    for version in (0, 99):
        frame = Frame(API["AlterUserScramCredentials"], version, "request", SALTED, "by-hand", peer, 0)
        assert list(auditing.act(frame, lambda: 0.0)) == []
    audit.close()
    told = [(line["outcome"], line["api"], line["version"]) for line in memory.of("request")]
    assert told == [("unreadable", "AlterUserScramCredentials", version) for version in (0, 99)]
    assert SALTED not in memory.data


@on_uvloop
async def test_a_client_id_forges_no_line() -> None:
    async with cluster() as (edge, [broker, *_]):
        memory, audit, _ = audited(edge)
        broker.answers["DeleteGroups"] = lambda *_: {"throttle_time_ms": 0, "results": []}
        client = await edge.client()
        forged = 'a"}\n{"event":"started"}\u2028\x1b[2J\\'
        body = encode({"groups_names": ["g"]}, "DeleteGroups", 2, "request")
        client.transport.write(request_frame(API["DeleteGroups"], 2, 1, forged, body))
        await client.frame()
        client.transport.abort()
        await eventually(lambda: memory.of("disconnected"))
        assert [line["event"] for line in memory.lines()] == ["connected", "request", "disconnected"]
        assert memory.data.count(b"\n") == len(memory.data.decode().splitlines()) == 3
        assert b"\x1b" not in memory.data
        assert memory.of("request")[0]["client_id"] not in (None, "")
        audit.close()
