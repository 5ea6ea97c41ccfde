"""Payloads whose bytes end early, or go on behind their end: values as far as they go, and the reason."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.decoders import spans
from klamm.decoders.payloads import (
    PAYLOADS,
    control_record,
    coordinator_record,
    decode_payload,
    encode_payload,
    group_payload,
    payload_layout,
    payload_oddity,
    read_payload,
    user_data,
)
from klamm.decoders.payloads.declaration import Payload
from klamm.decoders.schema import FIXED
from tests.decoders.test_payloads import every_payload, longest

SUBSCRIPTION, ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"
OF_KAFKAJS = bytes.fromhex("00010000000100066f726465727300000000")  # version 1, ["orders"], no user data
ORDERS = b"\0\0\0\1" + b"\0\6orders"


def oddity(name: str, data: bytes) -> str:
    return payload_oddity(read_payload(name, data), data)


def test_a_member_of_kafkajs_has_its_topics_and_the_oddity_says_who_writes_so() -> None:
    found = group_payload("consumer", "metadata", OF_KAFKAJS)
    assert found is not None
    assert found[:3] == (SUBSCRIPTION, 1, {"version": 1, "topics": ["orders"], "user_data": b""})
    assert payload_oddity(found, OF_KAFKAJS) == (
        "ends at byte 18 before owned_partitions, which version 1 has; version 0's layout fits; "
        "kafka-go, @platformatic/kafka, sarama-cluster and kafkajs before 2.2.2 write so"
    )


@pytest.mark.parametrize(
    ("name", "data", "values", "words"),
    [
        (SUBSCRIPTION, b"", {}, "ends at byte 0 before version"),
        (SUBSCRIPTION, b"\0", {}, "version at byte 0: needs 2 bytes, 1 left"),
        (
            SUBSCRIPTION, b"\0\2" + ORDERS, {"version": 2, "topics": ["orders"]},
            "ends at byte 14 before user_data",
        ),
        (
            SUBSCRIPTION, b"\0\2" + ORDERS + bytes(4) + bytes(4),
            {"version": 2, "topics": ["orders"], "user_data": b"", "owned_partitions": []},
            "ends at byte 22 before generation_id, which version 2 has; version 1's layout fits",
        ),
        (
            SUBSCRIPTION, b"\0\0" + b"\0\0\0\2" + b"\0\1a" + b"\0\2b", {"version": 0, "topics": ["a"]},
            "topics[1] at byte 11: needs 2 bytes, 1 left",
        ),
        (
            ASSIGNMENT,
            b"\0\0" + b"\0\0\0\2" + b"\0\1a" + b"\0\0\0\1" + b"\0\0\0\7" + b"\0\1b" + b"\0\0\0\1" + b"\0\0",
            {"version": 0, "assigned_partitions": [{"topic": "a", "partitions": [7]}]},
            "assigned_partitions[1].partitions at byte 24: announces 1 elements of at least 4 bytes, 2 left",
        ),
        (
            SUBSCRIPTION, b"\0\3" + ORDERS + bytes(4), {"version": 3, "topics": ["orders"], "user_data": b""},
            "ends at byte 18 before owned_partitions, which version 3 has; version 0's layout fits; "
            "samsa writes so",
        ),
        (
            ASSIGNMENT, b"\0\0" + bytes(4), {"version": 0, "assigned_partitions": []},
            "ends at byte 6 before user_data; "
            "kafka_ex before 2017 and @platformatic/kafka of May 2026 write so",
        ),
        (
            ASSIGNMENT, b"\0\1" + bytes(4), {"version": 1, "assigned_partitions": []},
            "ends at byte 6 before user_data; pykafka writes so",
        ),
        (
            ASSIGNMENT, b"\0\0" + bytes(4) + bytes(4) + b"xyz",
            {"version": 0, "assigned_partitions": [], "user_data": b""},
            "the payload at byte 10: 3 bytes left over",
        ),
        (
            "GroupMetadataValue", b"\0\x09" + bytes(8), {"version": 9},
            "version at byte 0: version 9; known are 0-4",
        ),
        ("GroupMetadataKey", b"\0\3\0\1a", {"type": 3}, "type at byte 0: a record of type 3, not 2"),
        (
            "SnapshotHeaderRecord", b"\0\0" + bytes(7) + b"\5",
            {"version": 0, "last_contained_log_timestamp": 5},
            "ends at byte 10 before the tagged fields",
        ),
        (
            "CooperativeStickyAssignorUserData", b"\0\0", {}, "generation at byte 0: needs 4 bytes, 2 left",
        ),
    ],
)  # fmt: skip
def test_what_is_there_is_read_and_the_oddity_says_what_is_missing(
    name: str, data: bytes, values: dict[str, Any], words: str
) -> None:
    assert read_payload(name, data).values == values
    assert oddity(name, data) == words


def test_a_payload_as_it_should_be_has_no_oddity() -> None:
    assert oddity(SUBSCRIPTION, encode_payload(SUBSCRIPTION, {"topics": ["orders"]})) == ""


def test_a_writer_is_named_for_its_own_oddity_only() -> None:
    assert "kafkajs" not in oddity(SUBSCRIPTION, OF_KAFKAJS + b"\0")
    assert "kafkajs" not in oddity(SUBSCRIPTION, b"\0\2" + OF_KAFKAJS[2:])


@pytest.mark.sampled(30)
@every_payload
def test_a_payload_that_ends_anywhere_has_all_fields_that_are_whole(payload: Payload) -> None:
    for each in longest(payload):
        whole = decode_payload(each.name, each.data).values
        ends = dict(_ends(each.name, each.version, each.data))
        for end in (*range(min(300, len(each.data))), *range(300, len(each.data), 17)):
            read = read_payload(each.name, each.data[:end])
            there = {name for name in ends if ends[name] <= end}
            assert {name: read.values.get(name, ...) for name in there} == {
                name: whole[name] for name in there
            }
            for name in read.values.keys() & ends.keys() - there:
                assert _begins(read.values[name], whole[name])
            older = payload.leads is None and read.version < each.version
            assert (read.failure is None) <= older, end


def _begins(part: Any, whole: Any) -> bool:
    """Are they the first elements of an array, or the first fields of a struct?"""
    if isinstance(whole, dict):
        return all(_begins(part[name], whole[name]) for name in part)
    return bool(part == whole or (isinstance(whole, list) and part == whole[: len(part)]))


def _ends(name: str, version: int, data: bytes) -> Iterator[tuple[str, int]]:
    tree, failure = spans.read(payload_layout(name, version), data, 0, len(data))
    assert failure is None
    return ((part.name, part.end) for part in tree.parts if part.field is not None)


@every_payload
def test_bytes_behind_a_payload_are_told_and_it_has_its_values(payload: Payload) -> None:
    for each in longest(payload):
        data = each.data + b"\0\0\0"
        read, whole = read_payload(each.name, data), decode_payload(each.name, each.data)
        assert payload_oddity(read, data)
        if read.version == each.version:
            assert read.values == whole.values
            assert oddity(each.name, data).startswith(
                f"the payload at byte {len(each.data)}: 3 bytes left over"
            )


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(PAYLOADS)), st.integers(0, 25), st.binary(max_size=80))
def test_any_bytes_are_read_so_far_without_an_error(payload: Payload, lead: int, rest: bytes) -> None:
    leads = b"" if payload.leads is None else lead.to_bytes(FIXED[payload.leads.kind][1], "big")
    read = read_payload(payload.name, leads + rest)
    assert bool(payload_oddity(read, leads + rest)) == (read.failure is not None)


@pytest.mark.parametrize("end", range(8))
def test_control_records_are_read_so_far(end: int) -> None:
    key, value = control_record(b"\0\0\0\1"[:end], b"\0\0\0\0\0\x09"[:end])
    assert key.values == [{}, {}, {"version": 0}, {"version": 0}, {"version": 0, "type": 1}][min(end, 4)]
    if value is not None:
        assert value.values == ({"version": 0, "coordinator_epoch": 9} if end >= 6 else {"version": 0})
    assert (value is None) == (end < 4)


def test_a_record_whose_value_ends_early_has_its_key_and_the_fields_before() -> None:
    key = encode_payload("OffsetCommitKey", {"group": "shop", "topic": "orders", "partition": 2})
    value = b"\0\1" + b"\0\0\0\0\0\0\0\x2a"
    of_key, of_value = coordinator_record("__consumer_offsets", key, value)
    assert (of_key.values["topic"], of_key.failure) == ("orders", None)
    assert of_value is not None
    assert of_value.values == {"version": 1, "offset": 42}
    assert payload_oddity(of_value, value) == "ends at byte 10 before metadata"


def test_user_data_is_read_so_far() -> None:
    found = user_data("sticky", "metadata", b"\0\0\0\1" + b"\0\1a" + b"\0\0\0\1" + b"\0\0\0\5" + b"\0\0")
    assert found is not None
    assert (found.version, found.values) == (1, {"previous_assignment": [{"topic": "a", "partitions": [5]}]})


def test_without_a_protocol_type_a_payload_is_a_consumers_if_its_first_field_is_whole() -> None:
    found = group_payload(None, "metadata", OF_KAFKAJS)
    assert found is not None
    assert found.values["topics"] == ["orders"]
    of_connect = encode_payload("ConnectSubscription", {"url": "http://a", "allocation": None})
    assert group_payload(None, "metadata", of_connect) is None
    assert group_payload("", "metadata", b"\0\0" + b"\0\0\0\2" + b"\0\1a" + b"\0\2b") is None
