"""The structures that the guides describe, from bytes written here by hand."""

import gzip
import struct
import zlib

import pytest

from klamm.decoders import API, decode, encode, records
from klamm.decoders.headers import (
    read_request_header,
    read_response_header,
    request_frame,
    request_header_version,
    response_frame,
)

NULL = struct.pack(">i", -1)


def sized(value: bytes) -> bytes:
    """`bytes`: an int32 size and the content."""
    return struct.pack(">i", len(value)) + value


def message(value: bytes, *, key: bytes = NULL, attributes: int = 0, offset: int = 0) -> bytes:
    """Offset, size and Message => Crc MagicByte Attributes Key Value; key and value with their sizes."""
    counted = struct.pack(">bb", 0, attributes) + key + value
    whole = struct.pack(">I", zlib.crc32(counted)) + counted
    return struct.pack(">qi", offset, len(whole)) + whole


def test_a_request_is_its_size_and_header_and_body() -> None:
    header = struct.pack(">hhih", 3, 0, 9, 4) + b"mine"
    body = struct.pack(">ih", 1, 5) + b"topic"
    written = encode({"topics": [{"name": "topic"}]}, "Metadata", 0, "request")
    assert written == body
    assert request_frame(API["Metadata"], 0, 9, "mine", written) == sized(header + body)
    read = read_request_header(header + body, request_header_version(API["Metadata"], 0))
    assert (read.key, read.version, read.correlation_id, read.client_id) == (3, 0, 9, "mine")
    assert read.size == len(header)


def test_a_response_is_its_size_and_correlation_id_and_body() -> None:
    assert response_frame(API["Heartbeat"], 0, 9, b"\0\x1b") == sized(struct.pack(">i", 9) + b"\0\x1b")
    assert read_response_header(struct.pack(">i", 9) + b"\0\x1b", 0).correlation_id == 9
    assert decode(b"\0\x1b", "Heartbeat", 0, "response") == {"error_code": 27}


def test_integers_are_big_endian_and_signed() -> None:
    body = b"\xff\xfe" + b"\0\0\1\0" + bytes(4)
    assert decode(body, "Produce", 0, "request") == {"acks": -2, "timeout_ms": 256, "topic_data": []}
    partition = b"\0\0\0\1" + b"\0\1t" + b"\0\0\0\1" + b"\0\0\0\7" + b"\0\0" + b"\0\0\0\1\0\0\0\0"
    (topic,) = decode(partition, "Produce", 0, "response")["responses"]
    assert topic["partition_responses"] == [{"index": 7, "error_code": 0, "base_offset": 1 << 32}]


def test_strings_have_an_int16_size_and_bytes_an_int32_size_and_minus_1_is_null() -> None:
    offset = b"\0\0\0\0" + bytes(8)
    head, tail = b"\0\0\0\1\0\1t\0\0\0\1" + offset, b"\0\0"
    for text, metadata in ((b"\0\4note", "note"), (b"\0\0", ""), (b"\xff\xff", None)):
        (topic,) = decode(head + text + tail, "OffsetFetch", 1, "response")["topics"]
        assert topic["partitions"][0]["metadata"] == metadata
    answer = b"\0\0" + sized(b"assignment")
    assert decode(answer, "SyncGroup", 0, "response") == {"error_code": 0, "assignment": b"assignment"}


def test_an_array_is_a_count_and_its_elements() -> None:
    body = struct.pack(">i", 2) + b"\0\1a" + b"\0\2bc"
    assert decode(body, "DescribeGroups", 0, "request") == {"groups": ["a", "bc"]}


def test_a_message_set_is_messages_without_a_count_and_in_produce_with_its_size() -> None:
    data = message(sized(b"first"), key=sized(b"key"), offset=5) + message(sized(b"second"), offset=6)
    read = [record for batch in records.batches(data) for record in records.records(batch)]
    assert [(record.offset, record.key, record.value) for record in read] == [
        (5, b"key", b"first"),
        (6, None, b"second"),
    ]
    body = struct.pack(">hii", 1, 1000, 1) + b"\0\1t" + struct.pack(">ii", 1, 0) + sized(data)
    produced = decode(body, "Produce", 0, "request")
    assert produced["topic_data"][0]["partition_data"] == [{"index": 0, "records": data}]


def test_key_and_value_of_a_message_may_be_null() -> None:
    (batch,) = records.batches(message(NULL))
    (record,) = records.records(batch)
    assert (record.key, record.value, batch.magic) == (None, None, 0)


def test_the_crc_is_the_crc32_of_the_rest_of_the_message() -> None:
    good = message(sized(b"value"))
    (batch,) = records.batches(good)
    assert batch.crc_ok
    for at in (12, 17, len(good) - 1):
        (batch,) = records.batches(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        assert not batch.crc_ok


@pytest.mark.parametrize(("attributes", "codec"), [(0, "none"), (1, "gzip"), (2, "snappy"), (3, "lz4")])
def test_the_lowest_bits_of_the_attributes_tell_the_codec(attributes: int, codec: str) -> None:
    (batch,) = records.batches(message(sized(b""), attributes=attributes))
    assert batch.codec == codec


def test_a_compressed_message_holds_a_message_set() -> None:
    inner = b"".join(message(sized(bytes([value])), offset=4 + index) for index, value in enumerate(b"abc"))
    data = message(sized(gzip.compress(inner)), attributes=1, offset=6)
    (batch,) = records.batches(data)
    assert [(record.offset, record.value) for record in records.records(batch)] == [
        (4, b"a"),
        (5, b"b"),
        (6, b"c"),
    ]


def test_a_message_that_was_cut_is_left_out() -> None:
    first, second = message(sized(b"first")), message(sized(b"second"), offset=1)
    for size in range(len(first), len(first + second)):
        cut = (first + second)[:size]
        assert [batch.base_offset for batch in records.batches(cut)] == [0]
        assert records.valid_bytes(cut) == len(first)
