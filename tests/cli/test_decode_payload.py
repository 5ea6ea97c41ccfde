"""`klamm decode --payload`: what Kafka writes into its own topics; and how frames of topic ids lead there."""

from __future__ import annotations

import pytest

from klamm.cli import FAILED, USAGE, main
from klamm.decoders.payloads import encode_payload
from klamm.decoders.records import Batch, Record, write
from tests.cli.decoded import Captured, objects, printed, response

KEY = encode_payload("OffsetCommitKey", {"group": "shop", "topic": "orders", "partition": 2})
VALUE = encode_payload("OffsetCommitValue", {"offset": 7, "metadata": "m", "commit_timestamp": 1763724000000})
NOTE = "topics are named by ids here, so records stay bytes; that at offset {} reads as one of {}: "


def group(**member: bytes) -> bytes:
    values = {"protocol_type": "consumer", "generation": 3, "protocol": "range", "leader": "m"}
    return encode_payload("GroupMetadataValue", {**values, "members": [{"member_id": "m", **member}]})


def test_a_payload_is_a_tree_of_its_fields(capsys: Captured) -> None:
    assert printed(capsys, "--payload", "offset_commit_key", KEY.hex()).splitlines() == [
        "hex, 20 bytes",
        "",
        "  0000                              OffsetCommitKey v0",
        "  0000  00 01                         type: 1",
        '  0002  00 04 73 68 6f 70             group: "shop"',
        '  0008  00 06 6f 72 64 65 72 73       topic: "orders"',
        "  0010  00 00 00 02                   partition: 2",
    ]


def test_what_members_of_a_group_wrote_is_read_too(capsys: Captured) -> None:
    subscription = encode_payload("ConsumerProtocolSubscription", {"version": 1, "topics": ["orders"]})
    data = group(subscription=subscription, assignment=b"\x00\x09")
    out = printed(capsys, "--payload", "GroupMetadataValue", data.hex(), code=FAILED)
    assert "ConsumerProtocolSubscription v1" in out
    assert 'topics: ["orders"]' in out
    (found,) = objects(capsys, "--payload", "GroupMetadataValue", data.hex(), code=FAILED)
    (member,) = found["values"]["members"]
    assert member["subscription"]["payload"] == "ConsumerProtocolSubscription"
    assert member["subscription"]["values"]["topics"] == ["orders"]
    assert member["assignment"]["reason"] == "ends at byte 2 before assigned_partitions"


def test_bytes_that_are_not_as_the_layout_says_are_told(capsys: Captured) -> None:
    out = printed(capsys, "--payload", "OffsetCommitKey", KEY[:-1].hex(), code=FAILED)
    assert "unreadable: partition at byte 16: needs 4 bytes, 3 left" in out
    (found,) = objects(capsys, "--payload", "OffsetCommitValue", "0009", "--places", code=FAILED)
    assert found["reason"] == "version at byte 0: version 9; known are 0-4"
    assert found["places"] == {"values.version": [0, 2]}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["--payload", "OfsetCommitKey", "00"],
            "unknown payload 'OfsetCommitKey'; did you mean OffsetCommitKey?",
        ),
        (["--payload", "xyz", "00"], "unknown payload 'xyz'; `klamm wire` lists them"),
        (
            ["--payload", "OffsetCommitKey", "--api", "Fetch", "00"],
            "--api is of frames, and --payload of what is in",
        ),
        (["--payload", "OffsetCommitKey", "--bare", "00"], "--bare is of frames"),
    ],
)
def test_a_name_or_an_option_that_does_not_fit_is_told(words: list[str], says: str, capsys: Captured) -> None:
    assert main(["decode", *words]) == USAGE
    assert capsys.readouterr().err.startswith(f"klamm decode: {says}")


def fetched(version: int, *found: Record, topic: str = "") -> list[str]:
    of = {"topic_id": bytes(15) + b"\x01"} if version > 12 else {"topic": topic}
    partitions = [{"partition_index": 0, "records": write(Batch(), list(found))}]
    frame = response("Fetch", version, {"responses": [{**of, "partitions": partitions}]})
    return [frame.hex(), "--api", "Fetch", "--version", str(version)]


def test_a_frame_with_topic_ids_says_how_its_records_of_kafkas_own_are_read(capsys: Captured) -> None:
    user, committed = Record(4, 0, b"user", b"x"), Record(5, 0, KEY, VALUE)
    note = (
        NOTE.format(5, "__consumer_offsets") + "klamm decode --payload OffsetCommitValue shows such a value"
    )
    assert f"\n  {note}\n" in printed(capsys, *fetched(13, user, committed))
    (found,) = objects(capsys, *fetched(13, user, committed))
    assert found["notes"] == [note]
    ended = printed(capsys, *fetched(13, Record(6, 0, KEY, None)))
    assert "klamm decode --payload OffsetCommitKey shows such a key" in ended


@pytest.mark.parametrize(
    "words", [fetched(13, Record(4, 0, b"user", b"x")), fetched(12, Record(5, 0, KEY, VALUE), topic="orders")]
)
def test_records_of_others_get_no_such_note(words: list[str], capsys: Captured) -> None:
    (found,) = objects(capsys, *words)
    assert "notes" not in found
