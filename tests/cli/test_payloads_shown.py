"""Payloads whose bytes end early, in all that shows a body: decode, show, tail, the inspector, timelines."""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from klamm.cli import FAILED, main
from klamm.cli.decode.as_json import as_object
from klamm.cli.decode.frames import FrameReader, Hints, pieces
from klamm.cli.decode.tree import View, lines
from klamm.cli.live.tail import text
from klamm.dashboards.web.chosen.trees import opened
from klamm.dashboards.web.lanes.groups import Groups
from klamm.decoders import API, encode
from klamm.decoders.payloads import encode_payload
from klamm.decoders.records import Batch, Record, write
from klamm.proxy.control.exchange import body
from klamm.rules.frame import Frame, Peer
from tests.captures.rows import Talk, written
from tests.cli.decoded import Captured, objects, printed, request, response
from tests.dashboards.web.exchanges import exchange
from tests.dashboards.web.lanes.made import Client, Sheet
from tests.dashboards.web.test_captures import flat

OF_KAFKAJS = bytes.fromhex("00010000000100066f726465727300000000")  # version 1, ["orders"], no user data
PEER = Peer("main", "1", "10.0.0.7:50000", "")
LACKS = (
    "ends at byte 18 before owned_partitions, which version 1 has; version 0's layout fits; "
    "kafka-go, @platformatic/kafka, sarama-cluster and kafkajs before 2.2.2 write so"
)
OWNED = [{"topic": "orders", "partitions": [0, 1]}, {"topic": "b", "partitions": [2]}]
STICKY = encode_payload("StickyAssignorUserData", {"previous_assignment": OWNED, "generation": 4})
MEMBERS = {  # by protocol type and part: what a member says, and what it is given
    ("consumer", "metadata"): encode_payload(
        "ConsumerProtocolSubscription",
        {"topics": ["orders", "b"], "user_data": STICKY, "owned_partitions": OWNED, "rack_id": "r1"},
    ),
    ("consumer", "assignment"): encode_payload(
        "ConsumerProtocolAssignment", {"assigned_partitions": OWNED, "user_data": b"x"}
    ),
    ("connect", "metadata"): encode_payload("ConnectSubscription", {"url": "http://a", "allocation": b"xy"}),
    ("connect", "assignment"): encode_payload(
        "ConnectAssignment",
        {"leader": "a", "leader_url": "http://a", "assignment": [{"connector": "sink", "tasks": [0, 1]}]},
    ),
}


def joined(metadata: bytes, of: str = "consumer") -> dict[str, Any]:
    return {
        "group_id": "shop", "session_timeout_ms": 30000, "rebalance_timeout_ms": 60000, "member_id": "",
        "protocol_type": of, "protocols": [{"name": "sticky", "metadata": metadata}],
    }  # fmt: skip


def synced(assignment: bytes, of: str = "consumer") -> dict[str, Any]:
    return {"protocol_type": of, "protocol_name": "sticky", "assignment": assignment}


def test_show_has_the_values_that_are_there_and_then_the_reason(tmp_path: Path, capsys: Captured) -> None:
    talk = Talk().exchange("JoinGroup", 2, joined(OF_KAFKAJS), {"member_id": "m"})
    path = str(written(tmp_path / "a.arrow", talk.rows))
    assert main(["show", path, "-v"]) == 0
    found = [line for line in capsys.readouterr().out.splitlines() if line.startswith("        ")]
    assert found == [
        "        name: sticky",
        "        metadata: ConsumerProtocolSubscription v1",
        "          version: 1",
        "          topics: orders",
        "          user_data: ",
        f"          {LACKS}",
    ]
    assert main(["show", path, "-v", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["request"]
    assert told["payloads"] == {
        "protocols[0].metadata": {
            "payload": "ConsumerProtocolSubscription",
            "version": 1,
            "values": {"version": 1, "topics": ["orders"], "user_data": ""},
            "reason": LACKS,
        }
    }
    assert told["values"]["protocols"][0]["metadata"] == b64encode(OF_KAFKAJS).decode(), "as it was"


def test_show_has_what_an_assignor_added_below_the_subscription(tmp_path: Path, capsys: Captured) -> None:
    metadata = MEMBERS["consumer", "metadata"]
    answer = {"member_id": "m", "protocol_name": "sticky", "members": [{"metadata": metadata}]}
    talk = Talk().exchange("JoinGroup", 2, joined(metadata), answer)
    assert main(["show", str(written(tmp_path / "a.arrow", talk.rows)), "-v"]) == 0
    out = capsys.readouterr().out
    assert out.count("metadata: ConsumerProtocolSubscription v3\n") == 2, "of the request and of the response"
    assert out.count("user_data: StickyAssignorUserData v1\n") == 2
    assert out.count("            generation: 4\n") == 2


def test_the_inspector_has_the_values_that_are_there_and_the_reason() -> None:
    page = opened(exchange("JoinGroup", 2, joined(OF_KAFKAJS), {"member_id": "m"}))
    assert page.request is not None
    told = [(node.name, node.text, node.error) for node in flat(page.request.tree)]
    assert told[-5:] == [
        ("ConsumerProtocolSubscription v1", "", False),
        ("version", "1", False),
        ("topics", "orders", False),
        ("user_data", "empty", False),
        ("missing", LACKS, True),
    ]


def test_the_timeline_of_a_group_has_the_topics_of_such_a_member() -> None:
    answer = {"generation_id": 1, "leader": "m", "member_id": "m", "members": []}
    without_user_data = bytes.fromhex("00010000000100066f72646572730000000100000003")
    one = Client()
    sheet = Sheet(
        Groups(),
        [
            one.asks(0.0, "JoinGroup", 2, joined(OF_KAFKAJS), answer),
            one.asks(
                0.1, "SyncGroup", 0, {"group_id": "shop", "generation_id": 1, "member_id": "m"},
                {"assignment": without_user_data},
            ),
        ],
    )  # fmt: skip
    assert "subscribes to orders" in sheet.one("join").text
    assert sheet.one("assignment").text == "assigned orders [3]"


def ends(whole: bytes) -> Iterator[bytes]:
    yield from (whole[:end] for end in range(1, len(whole)))
    yield whole + b"xyz"


@pytest.mark.parametrize(("of", "part"), MEMBERS)
def test_a_payload_that_ends_anywhere_is_shown_everywhere(of: str, part: str) -> None:
    for data in ends(MEMBERS[of, part]):
        if part == "metadata":
            made, hints = request("JoinGroup", 4, joined(data, of)), Hints(API["JoinGroup"], 4, "request")
            one = exchange("JoinGroup", 4, joined(data, of), {})
        else:
            made, hints = response("SyncGroup", 5, synced(data, of)), Hints(API["SyncGroup"], 5, "response")
            one = exchange("SyncGroup", 5, {}, synced(data, of))
        (piece,) = pieces(made, hints)
        message = FrameReader(hints).read(piece)
        assert message is not None
        assert message.failure is None
        out = ["".join(words for words, _ in line) for line in lines(message, View(full=True))]
        (told,) = as_object(message, secrets=False, places=True)["unreadable"][:1]
        assert any(line.endswith(told["reason"]) for line in out), len(data)
        page = opened(one)
        tree = page.request.tree if part == "metadata" and page.request else page.response.tree
        assert told["reason"] in [node.text for node in flat(tree) if node.error], len(data)


@pytest.mark.parametrize(("of", "part"), MEMBERS)
def test_a_payload_that_ends_anywhere_is_in_show_and_tail(of: str, part: str) -> None:
    api, version, side = ("JoinGroup", 4, "request") if part == "metadata" else ("SyncGroup", 5, "response")
    for data in ends(MEMBERS[of, part]):
        values = joined(data, of) if part == "metadata" else synced(data, of)
        frame = Frame(API[api], version, side, encode(values, api, version, side), "a", PEER, 0)  # type: ignore[arg-type]
        told = body(frame, raw=False)
        (path, found), *_ = told.payloads.items()
        assert path == ("protocols[0].metadata" if part == "metadata" else "assignment")
        assert found.reason, len(data)
        shown = replace(exchange(api, version), request=told)
        assert f"      {found.reason}" in "\n".join(text(shown, False, False)), len(data)


KEY = encode_payload("OffsetCommitKey", {"group": "shop", "topic": "orders", "partition": 2})
COMMIT = Record(3, 0, KEY, b"\0\1" + b"\0\0\0\0\0\0\0\x2a")  # the offset, and no more
MARKER = Record(9, 0, b"\0\0\0\1", b"\0\0" + b"\0\0")  # a COMMIT without half of its coordinator_epoch
NO_METADATA = "ends at byte 10 before metadata"
NO_EPOCH = "coordinator_epoch at byte 2: needs 4 bytes, 2 left"
COMMIT_VALUE = {"name": "OffsetCommitValue", "version": 1, "values": {"version": 1, "offset": 42}}


def fetched() -> dict[str, Any]:
    """A Fetch response of version 11 with both records."""
    batches = {
        "__consumer_offsets": write(Batch(), [COMMIT]),
        "orders": write(Batch(is_control=True), [MARKER]),
    }
    return {
        "responses": [
            {"topic": topic, "partitions": [{"partition_index": 0, "records": data}]}
            for topic, data in batches.items()
        ]
    }


def test_records_of_kafkas_own_are_decoded_as_far_as_they_go(capsys: Captured) -> None:
    words = [response("Fetch", 11, fetched()).hex(), "--api", "Fetch", "--version", "11"]
    out = printed(capsys, *words, code=FAILED)
    assert "value OffsetCommitValue(version=1, offset=42)\n" in out
    assert f"unreadable: value: {NO_METADATA}\n" in out
    assert "offset 9, COMMIT" in out
    assert f"unreadable: value: {NO_EPOCH}\n" in out
    (found,) = objects(capsys, *words, code=FAILED)
    (record,) = found["body"]["responses"][0]["partitions"][0]["records"][0]["records"]
    assert record["value_of"] == {**COMMIT_VALUE, "reason": NO_METADATA}
    assert [one["reason"] for one in found["unreadable"]] == [f"value: {NO_METADATA}", f"value: {NO_EPOCH}"]


def test_show_has_records_of_kafkas_own_as_far_as_they_go(tmp_path: Path, capsys: Captured) -> None:
    path = str(written(tmp_path / "a.arrow", Talk().exchange("Fetch", 11, {}, fetched()).rows))
    assert main(["show", path, "-v"]) == 0
    out = capsys.readouterr().out
    assert (
        'key OffsetCommitKey(type=1, group="shop", topic="orders", partition=2)  value OffsetCommitValue('
        in out
    )
    assert f"(version=1, offset=42)  value: {NO_METADATA}\n" in out
    assert f"value EndTxnMarker(version=0)  value: {NO_EPOCH}\n" in out
    assert main(["show", path, "-v", "--json"]) == 0
    topics = json.loads(capsys.readouterr().out)["response"]["values"]["responses"]
    offsets, control = (one["partitions"][0]["records"]["batches"][0]["content"][0] for one in topics)
    assert offsets["value_of"] == {**COMMIT_VALUE, "reason": NO_METADATA}
    assert control["key_of"]["values"] == {"version": 0, "type": 1}
    assert control["value_of"]["reason"] == NO_EPOCH


def test_the_inspector_has_records_of_kafkas_own_as_far_as_they_go() -> None:
    page = opened(exchange("Fetch", 11, {}, fetched()), content=True)
    assert page.response is not None
    wrong = [node.text for node in flat(page.response.tree) if node.error]
    assert wrong == [f"value: {NO_METADATA}", f"value: {NO_EPOCH}"]


@pytest.mark.parametrize("shown", [["-v"], ["-x"], ["-v", "--json"]])
def test_show_has_records_of_kafkas_own_where_topics_have_ids(
    shown: list[str], tmp_path: Path, capsys: Captured
) -> None:
    topic_id = bytes(range(16))
    partitions = [{"partition_index": 0, "records": write(Batch(), [COMMIT])}]
    named = {"topics": [{"topic_id": topic_id, "name": "__consumer_offsets"}]}
    talk = Talk().exchange("Metadata", 12, {}, named)
    talk.exchange("Fetch", 16, {}, {"responses": [{"topic_id": topic_id, "partitions": partitions}]})
    assert main(["show", str(written(tmp_path / "a.arrow", talk.rows)), *shown]) == 0
    out = capsys.readouterr().out
    assert "OffsetCommitValue" in out
    assert NO_METADATA in out


def test_the_inspector_has_records_of_kafkas_own_where_topics_have_ids() -> None:
    topic_id = bytes(range(16))
    asked = {"topics": [{"topic_id": topic_id, "partitions": [{"partition": 0}]}]}
    partitions = [{"partition_index": 0, "records": write(Batch(), [COMMIT])}]
    answer = {"responses": [{"topic_id": topic_id, "partitions": partitions}]}
    for name, wrong in (("__consumer_offsets", [f"value: {NO_METADATA}"]), ("orders", [])):
        page = opened(exchange("Fetch", 16, asked, answer, topics={name: [0]}), content=True)
        assert page.response is not None
        assert [node.text for node in flat(page.response.tree) if node.error] == wrong
