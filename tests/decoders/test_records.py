"""Records fields by example: what is told, what is derived, and what is refused with which words."""

import struct
import zlib

import cramjam
import pytest

from klamm.decoders.payloads import control_record, encode_payload
from klamm.decoders.records import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    Batch,
    Record,
    RecordsError,
    batches,
    records,
    valid_bytes,
    write,
)
from klamm.decoders.records import codecs as records_codecs

SOME = [Record(40 + index, 1000 - index, b"k", b"v%d" % index) for index in range(3)]
LZ4_RIGHT, LZ4_BROKEN = (
    b"\x04\x22\x4d\x18\x60\x40\x82",
    b"\x04\x22\x4d\x18\x60\x40\x1a",
)  # as lz4-java has them


def only(data: bytes) -> Batch:
    (batch,) = batches(data)
    return batch


def message(magic: int, attributes: int, value: bytes | None, offset: int = 0) -> bytes:
    """A message made by hand."""
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", 5) if magic else b"")
    body += struct.pack(">i", -1) + (
        struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
    )
    return struct.pack(">qiI", offset, 4 + len(body), zlib.crc32(body)) + body


def test_offsets_and_timestamps_that_are_not_given_are_taken_from_the_records() -> None:
    batch = only(write(Batch(), SOME))
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (40, 42, 3)
    assert (batch.base_timestamp, batch.max_timestamp) == (1000, 1000)
    assert list(records(batch)) == SOME


def test_offsets_that_are_given_stay_as_where_a_log_was_compacted() -> None:
    given = Batch(base_offset=30, last_offset=50, base_timestamp=7, max_timestamp=2000)
    batch = only(write(given, SOME))
    assert (batch.base_offset, batch.last_offset, batch.base_timestamp, batch.max_timestamp) == (
        30,
        50,
        7,
        2000,
    )
    assert list(records(batch)) == SOME
    assert list(records(only(write(given, [])))) == []


def test_the_time_of_appending_stands_for_the_time_of_every_record() -> None:
    for magic, codec in ((1, "none"), (1, "gzip"), (2, "none"), (2, "gzip")):
        given = Batch(magic, codec=codec, timestamp_type=LOG_APPEND_TIME, max_timestamp=9000)
        for batch in batches(write(given, SOME)):
            assert batch.timestamp_type == LOG_APPEND_TIME
            assert {record.timestamp for record in records(batch)} == {9000}


def test_what_a_batch_is_part_of_is_told() -> None:
    given = Batch(
        is_transactional=True,
        is_control=True,
        has_delete_horizon=True,
        base_timestamp=123,
        partition_leader_epoch=4,
        producer_id=1 << 40,
        producer_epoch=5,
        base_sequence=6,
    )
    marker = Record(8, 123, b"\0\0\0\1", encode_payload("EndTxnMarker", {"coordinator_epoch": 17}))
    batch = only(write(given, [marker]))
    for name in ("is_transactional", "is_control", "has_delete_horizon", "producer_id", "base_sequence"):
        assert getattr(batch, name) == getattr(given, name)
    (found,) = records(batch)
    decoded_key, value = control_record(found.key, found.value)
    assert decoded_key.values["type"] == 1
    assert value is not None
    assert value.values["coordinator_epoch"] == 17


def test_what_was_printed_of_a_batch_leaves_its_bytes_out() -> None:
    assert "data=" not in repr(only(write(Batch(), SOME)))
    assert "codec='gzip'" in repr(Batch(codec="gzip"))


def test_batches_of_all_formats_stand_one_after_another() -> None:
    data = b"".join(write(Batch(magic, timestamp_type=CREATE_TIME), SOME) for magic in (2, 1, 2, 0))
    found = list(batches(data))
    assert [batch.magic for batch in found] == [2, 1, 1, 1, 2, 0, 0, 0]
    assert found[0].start == 0
    assert [batch.end for batch in found[:-1]] == [batch.start for batch in found[1:]]
    assert found[-1].end == len(data) == valid_bytes(data)
    assert [record.value for batch in found for record in records(batch)] == [b"v0", b"v1", b"v2"] * 4


def test_a_header_name_that_is_not_utf_8_survives() -> None:
    data = write(Batch(), [Record(headers=(("\udcff", b"x"), ("", None)))])
    (found,) = records(only(data))
    assert found.headers == (("\udcff", b"x"), ("", None))
    assert write(Batch(), [found]) == data


def test_inner_offsets_are_absolute_in_magic_0_and_relative_in_magic_1() -> None:
    for magic, inner in ((0, 40), (1, 0)):
        batch = only(write(Batch(magic, codec="gzip"), SOME))
        value = batch.data[batch.start + (26 if magic == 0 else 34) :]
        assert int.from_bytes(zlib.decompress(value, wbits=31)[:8], "big") == inner
        assert [record.offset for record in records(batch)] == [40, 41, 42]


def test_a_compressed_message_of_magic_1_with_offset_0_leaves_the_offsets_inside_as_they_are() -> None:
    inside = message(1, 0, b"a", 5) + message(1, 0, b"b", 6)
    outside = message(1, 1, records_codecs.compress("gzip", inside), offset=0)
    assert [record.offset for record in records(only(outside))] == [5, 6]


def test_lz4_of_magic_0_has_the_header_checksum_that_the_first_clients_wrote() -> None:
    assert records_codecs.compress("lz4", b"text", magic=0)[:7] == LZ4_BROKEN
    assert records_codecs.compress("lz4", b"text", magic=1)[:7] == LZ4_RIGHT


def test_both_header_checksums_of_lz4_are_read_in_magic_0_and_the_right_one_only_later() -> None:
    frame = records_codecs.compress("lz4", b"text" * 50)
    for header in (LZ4_RIGHT, LZ4_BROKEN):
        assert records_codecs.decompress("lz4", header + frame[7:], 200, magic=0) == b"text" * 50
    with pytest.raises(RecordsError, match="wrong lz4"):
        records_codecs.decompress("lz4", LZ4_BROKEN + frame[7:], 200, magic=1)


def test_snappy_is_read_raw_and_in_the_blocks_of_xerial_whatever_their_version() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"text" * 50))
    block = struct.pack(">i", len(raw)) + raw
    for data in (raw, records_codecs.XERIAL + block, records_codecs.XERIAL[:8] + bytes(8) + block):
        assert records_codecs.decompress("snappy", data, 200) == b"text" * 50
    assert records_codecs.compress("snappy", b"text").startswith(records_codecs.XERIAL)


@pytest.mark.parametrize(
    ("data", "offset", "words"),
    [
        (write(Batch(), SOME)[:16] + b"\x03" + bytes(60), 0, "magic 3; known are 0, 1 and 2"),
        (struct.pack(">qiib", 0, 48, 0, 2) + bytes(60), 0, "a size of 48, too small for magic 2"),
        (struct.pack(">qiIb", 0, -1, 0, 0) + bytes(60), 0, "a size of -1, too small for magic 0"),
        (message(0, 0, b"x") + message(0, 1, None), 27, "a compressed message without a value"),
        (
            message(1, 1, records_codecs.compress("gzip", b"")),
            0,
            "wrong or cut at byte 0 of what was in gzip",
        ),
        (
            message(0, 1, records_codecs.compress("gzip", message(0, 1, b"x"))),
            0,
            "a compressed message in a compressed one",
        ),
        (
            message(1, 1, records_codecs.compress("gzip", message(1, 0, b"x", 5)), offset=4),
            0,
            "offset 4, while the last one inside is 5",
        ),
        (message(0, 1, b"no gzip"), 0, "wrong gzip: Not a gzipped file"),
    ],
)
def test_wrong_bytes_are_refused_with_the_place_and_the_reason(data: bytes, offset: int, words: str) -> None:
    with pytest.raises(RecordsError, match=words) as refused:
        _ = [list(records(batch)) for batch in batches(data)]
    assert refused.value.offset == offset
    assert f"records at byte {offset}: " in str(refused.value)


def test_bytes_left_over_behind_the_last_record_are_refused() -> None:
    data = bytearray(write(Batch(), SOME))
    data[57:61] = struct.pack(">i", 2)
    found = records(only(bytes(data)))
    assert [next(found), next(found)] == SOME[:2]
    with pytest.raises(RecordsError, match=r"\d+ bytes are left over behind 2 records"):
        next(found)


@pytest.mark.parametrize(
    ("batch", "record", "words"),
    [
        (Batch(3), Record(), "magic 3; known are 0, 1 and 2"),
        (Batch(1), Record(headers=(("h", None),)), "need magic 2, not 1"),
        (Batch(0, is_control=True), Record(), "need magic 2, not 0"),
        (Batch(1, codec="zstd"), Record(), "records of magic 1 cannot be compressed with zstd"),
        (Batch(codec="rar"), Record(), "records of magic 2 cannot be compressed with rar"),
        (Batch(producer_id=1 << 63), Record(), "a number does not fit"),
        (Batch(), Record(offset=1 << 64), "a number does not fit"),
        (Batch(base_timestamp=-5), Record(timestamp=(1 << 63) - 1), "a number does not fit"),
        (Batch(base_offset=9), Record(), "not between the batch's, 9 and 0"),
    ],
)
def test_what_a_format_cannot_carry_is_not_written(batch: Batch, record: Record, words: str) -> None:
    with pytest.raises(RecordsError, match=words):
        write(batch, [record])
