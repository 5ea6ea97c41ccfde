"""Record batches in what `klamm decode` prints: of all formats and codecs, damaged ones, Kafka's own."""

import pytest

from klamm.cli import FAILED
from klamm.decoders.payloads import encode_payload
from klamm.decoders.records import Batch, Record, write
from tests.cli.decoded import Captured, objects, printed, response

RECORDS = [
    Record(10 + n, 1763724000000 + n, b"user-%d" % n, b'{"n": %d}' % n, (("trace", b"\xff"),))
    for n in range(12)
]
SHOWN = """[0]: offset 10, 2025-11-21 11:20:00.000Z, key "user-0", value '{"n": 0}', header "trace" 1 byte"""


def fetched(*fields: bytes, topic: str = "orders") -> list[str]:
    """Words that decode a Fetch response with one partition for each."""
    partitions = [{"partition_index": n, "records": data} for n, data in enumerate(fields)]
    frame = response("Fetch", 11, {"responses": [{"topic": topic, "partitions": partitions}]})
    return [frame.hex(), "--api", "Fetch", "--version", "11"]


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4"])
def test_records_are_shown_in_their_batches(codec: str, capsys: Captured) -> None:
    batch = write(Batch(codec=codec, is_transactional=True, producer_id=4), RECORDS)
    out = printed(capsys, *fetched(batch))
    named = "" if codec == "none" else f", {codec}"
    assert f"[0]: transactional batch of 12 records, offsets 10-21{named}\n" in out
    assert "base_timestamp: 1763724000000 2025-11-21 11:20:00.000Z" in out
    assert "producer_id: 4" in out
    assert SHOWN in out
    assert "... 2 more" in out
    assert "[11]: offset 21" in printed(capsys, *fetched(batch), "--full")


@pytest.mark.parametrize("magic", [0, 1])
def test_message_sets_of_old_are_shown_too(magic: int, capsys: Captured) -> None:
    plain = [Record(n, 1763724000000 if magic else -1, b"k", b"v") for n in range(2)]
    for codec in ("none", "gzip"):
        out = printed(capsys, *fetched(write(Batch(magic=magic, codec=codec), plain)))
        time = ", 2025-11-21 11:20:00.000Z" if magic else ""
        assert f'offset 1{time}, key "k", value "v"' in out


def test_an_uncompressed_record_stands_where_it_says(capsys: Captured) -> None:
    words = fetched(write(Batch(), RECORDS))
    line = next(line for line in printed(capsys, *words).splitlines() if "[2]: offset 12" in line)
    start = int(line.split()[0], 16)
    assert b"user-2" in bytes.fromhex(words[0])[start : start + 12]


def test_records_as_json_have_their_keys_and_values_in_base64(capsys: Captured) -> None:
    (found,) = objects(capsys, *fetched(write(Batch(codec="gzip"), RECORDS[:1]), b""))
    first, second = found["body"]["responses"][0]["partitions"]
    (batch,) = first["records"]
    assert (batch["magic"], batch["codec"], batch["base_offset"], batch["crc_ok"]) == (2, "gzip", 10, True)
    assert batch["records"] == [
        {
            "offset": 10, "timestamp": 1763724000000, "key": "dXNlci0w", "value": "eyJuIjogMH0=",
            "headers": [["trace", "/w=="]],
        }
    ]  # fmt: skip
    assert second["records"] == []


def test_what_kafka_writes_itself_is_named(capsys: Captured) -> None:
    marker = Record(
        9, 0, encode_payload("ControlRecordTypeSchema", {"type": 1}), encode_payload("EndTxnMarker", {})
    )
    out = printed(capsys, *fetched(write(Batch(is_control=True, is_transactional=True), [marker])))
    assert "control transactional batch of 1 record" in out
    assert "offset 9, COMMIT" in out
    assert "value EndTxnMarker(version=0, coordinator_epoch=0)" in out
    committed = Record(3, 0, encode_payload("OffsetCommitKey", {"group": "shop", "topic": "orders"}), None)
    out = printed(capsys, *fetched(write(Batch(), [committed]), topic="__consumer_offsets"))
    assert 'key OffsetCommitKey(type=1, group="shop", topic="orders", partition=0), value null' in out


def test_damaged_records_are_told_and_the_rest_is_read(capsys: Captured) -> None:
    damaged = bytearray(write(Batch(), RECORDS[:2]))
    damaged[-1] ^= 1
    words = fetched(bytes(damaged), bytes(16) + b"\x07" + bytes(60), write(Batch(), RECORDS))
    out = printed(capsys, *words, code=FAILED)
    assert "damaged: the checksum is of other bytes" in out
    assert "unreadable: magic 7; known are 0, 1 and 2" in out
    assert out.count(SHOWN) == 2
    (found,) = objects(capsys, *words, code=FAILED)
    assert [(one["path"], one["reason"]) for one in found["unreadable"]] == [
        ("responses[0].partitions[0].records[0]", "the checksum is of other bytes"),
        ("responses[0].partitions[1].records", "magic 7; known are 0, 1 and 2"),
    ]


def test_a_batch_that_the_broker_cut_is_no_failure(capsys: Captured) -> None:
    whole = write(Batch(), RECORDS)
    out = printed(capsys, *fetched(whole + whole[:50]))
    assert "part of a batch: 50 bytes" in out
