"""Bytes that were once read, refused or written wrongly."""

from typing import Any

import pytest

from klamm.decoders import API, DecodeError, compile, decode, encode, interpret, layout
from klamm.decoders.headers import read_request_header, read_response_header, request_frame
from klamm.decoders.interpret import LONGEST_STRING, uvarint
from klamm.decoders.schema import UNKNOWN_TAGS
from tests.decoders.hostile import read_both_ways, reader

FIND = layout("FindCoordinator", 3, "request")  # a string, an int8 and the tags
TOPICS = layout("Metadata", 1, "request")  # a classic nullable array


def find(size: int) -> bytes:
    return uvarint(size + 1) + b"k" * size + b"\0\0"


def walked(walk: compile.Walk, data: bytes) -> Any:
    walking = walk()
    next(walking)
    with pytest.raises(StopIteration) as end:
        walking.send(data)
    return end.value.value


def test_a_string_is_as_long_as_kafka_allows_where_its_length_is_a_varint_too() -> None:
    values = read_both_ways(FIND, find(LONGEST_STRING))
    assert values is not None
    assert len(values["key"]) == LONGEST_STRING


@pytest.mark.parametrize("paths", [(("key",),), (("key_type",),)], ids=["kept", "skipped"])
def test_a_longer_string_is_refused_by_every_reader_since_it_could_not_be_written_again(
    paths: tuple[compile.Path, ...],
) -> None:
    data = find(LONGEST_STRING + 1)
    with pytest.raises(DecodeError, match="key at byte 3: a string of 32768 bytes; Kafka allows 32767"):
        decode(data, FIND.api, FIND.version, FIND.side)
    with pytest.raises(compile.Malformed):
        reader(FIND)(data, 0, len(data))
    for make in (compile.pick, compile.locate):
        with pytest.raises(compile.Malformed):
            make(FIND, paths)(data, 0, len(data))
    walking = compile.walk(FIND, paths)()
    next(walking)
    with pytest.raises(compile.Malformed):
        walking.send(data)


@pytest.mark.parametrize(
    "tags", [[(9, b"a"), (3, b"b")], [(7, b""), (7, b"")], [(3, b""), (9, b"")]], ids=repr
)
def test_unknown_tagged_fields_are_written_in_the_order_that_they_were_read_in(tags: Any) -> None:
    section = uvarint(len(tags)) + b"".join(bytes([tag, len(data)]) + data for tag, data in tags)
    body = b"\1" + b"\0" + section
    values = decode(body, FIND.api, FIND.version, FIND.side)
    assert values[UNKNOWN_TAGS] == tags
    assert encode(values, FIND.api, FIND.version, FIND.side) == body


def test_a_tag_of_a_later_version_is_kept_as_an_unknown_one() -> None:
    """Kafka refuses it: tag 1 of a Fetch request is its replica_state, from version 15 on."""
    of = layout("Fetch", 14, "request")
    body = interpret.write(of, {UNKNOWN_TAGS: [(1, b"xyz")]})
    values = read_both_ways(of, body)
    assert values is not None
    assert values[UNKNOWN_TAGS] == [(1, b"xyz")]
    assert encode(values, of.api, of.version, of.side) == body


def test_known_tagged_fields_take_their_place_among_the_unknown() -> None:
    of = layout("Fetch", 17, "request")
    values = decode(interpret.write(of, {"cluster_id": "c"}), of.api, of.version, of.side)
    values[UNKNOWN_TAGS] = [(5, b"x"), (9, b"y")]
    values["replica_state"] = {"replica_id": 7, "replica_epoch": 1}
    body = encode(values, of.api, of.version, of.side)
    assert body.endswith(b"\4" + b"\0\2\2c" + b"\1\x0d" + b"\0\0\0\7" + bytes(7) + b"\1\0" + b"\5\1x\x09\1y")
    assert read_both_ways(of, body) == values


def test_the_last_of_a_repeated_tagged_field_holds_for_every_reader() -> None:
    of = layout("Fetch", 17, "request")
    body = interpret.write(of, {})[:-1] + b"\2" + b"\0\2\2a" + b"\0\2\2b"
    values = read_both_ways(of, body)
    assert values is not None
    assert values["cluster_id"] == "b"
    paths = (("cluster_id",),)
    assert compile.pick(of, paths)(body, 0, len(body))[0] == "b"
    assert walked(compile.walk(of, paths), body)[0] == "b"


@pytest.mark.parametrize("length", [-1, -2, -(2**31)])
def test_any_negative_length_is_null_where_null_is_allowed_as_it_is_to_kafka(length: int) -> None:
    body = length.to_bytes(4, "big", signed=True)
    values = read_both_ways(TOPICS, body)
    assert values is not None
    assert values["topics"] is None
    assert compile.pick(TOPICS, (("topics", "name"),))(body, 0, 4) == (None, 4)
    assert walked(compile.walk(TOPICS, (("topics", "name"),)), body) == (None, 0)
    assert encode(values, TOPICS.api, 1, "request") == b"\xff" * 4


def test_a_negative_length_is_refused_where_null_is_not_allowed() -> None:
    with pytest.raises(DecodeError, match="topics at byte 4: a length of -2"):
        decode(b"\xff\xff\xff\xfe", "Metadata", 0, "request")


def test_a_refused_header_tells_its_version() -> None:
    frame = request_frame(API["Metadata"], 12, 7, "klamm", b"")[4:]
    with pytest.raises(DecodeError, match="RequestHeader v2 request") as refused:
        read_request_header(frame[:-1], 2)
    assert refused.value.version == 2
    with pytest.raises(DecodeError, match="ResponseHeader v1 response"):
        read_response_header(b"\0\0\0\7", 1)


def test_any_negative_length_of_a_client_id_is_null() -> None:
    assert read_request_header(b"\0\3\0\1\0\0\0\7\xff\xfe", 1).client_id is None


@pytest.mark.parametrize("section", [b"\1\0\1\2a", b"\1\0\3\2a\0", b"\1\0\2\3ab"], ids=bytes.hex)
def test_a_tagged_field_of_another_size_than_its_value_is_refused_by_every_reader(section: bytes) -> None:
    of = layout("Fetch", 17, "request")
    body = interpret.write(of, {})[:-1] + section
    assert read_both_ways(of, body) is None
    for make in (compile.pick, compile.locate):
        with pytest.raises(compile.UNREADABLE):
            make(of, (("cluster_id",),))(body, 0, len(body))
