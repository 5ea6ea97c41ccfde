"""Kafka's own classes judge what is read and written of the payloads inside its fields and topics."""

from contextlib import suppress
from copy import deepcopy
from functools import cache, partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.decoders import DecodeError, EncodeError, UnknownApi, interpret
from klamm.decoders.payloads import (
    COORDINATOR_TOPICS,
    PAYLOADS,
    Decoded,
    control_record,
    coordinator_record,
    decode_payload,
    encode_payload,
    group_payload,
    payload_layout,
    user_data,
)
from klamm.decoders.payloads.control_records import CONTROL_TYPES
from klamm.decoders.payloads.declaration import Payload
from klamm.decoders.schema import FIXED, NEWEST, all_fields
from tests.oracle.payloads import Answers, Written, answers

SEED = 20
PER_LAYOUT = 8
DAMAGE = (b"\0", b"\1", b"\x7f", b"\x80", b"\xff")
LEFT_OUT = {  # schemas of Kafka's jars that stand in no field and no topic that a client can read
    "QuorumStateData": "a file beside the metadata log",
    "ProducerSnapshot": "a file beside a partition's log",
    "RemoteLogSegmentMetadataRecord": "tiered storage's own topic",
    "RemoteLogSegmentMetadataUpdateRecord": "tiered storage's own topic",
    "RemoteLogSegmentMetadataSnapshotRecord": "tiered storage's own topic",
    "RemotePartitionDeleteMetadataRecord": "tiered storage's own topic",
}
WITHOUT_SCHEMA = {  # written by hand in Kafka
    "StickyAssignorUserData",
    "CooperativeStickyAssignorUserData",
    "ConnectSubscription",
    "ConnectAssignment",
    "AssignmentInfo",
}


@cache
def kafka() -> Answers:
    return answers(SEED, PER_LAYOUT)


def written(payload: Payload) -> list[Written]:
    return [each for each in kafka().written if each.name == payload.name]


def longest(payload: Payload) -> list[Written]:
    """One of each version."""
    by_length = sorted(written(payload), key=lambda each: len(each.data))
    return list({each.version: each for each in by_length}.values())


every_payload = pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: payload.name)


def test_the_payloads_are_those_that_the_jars_have_schemas_of_and_a_few_without() -> None:
    schemas = {name for name, file in kafka().schemas.items() if not file.startswith("common/metadata/")}
    assert schemas - LEFT_OUT.keys() == {payload.name for payload in PAYLOADS} - WITHOUT_SCHEMA
    assert schemas >= LEFT_OUT.keys()


def test_107_layouts_were_compared_which_are_all_versions_of_all_payloads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    compared = {(each.name, each.version) for each in kafka().written}
    declared = {(payload.name, version) for payload in PAYLOADS for version in versions(payload)}
    assert compared == declared
    assert len(compared) == 107
    with capsys.disabled():
        print(f"\n{len(compared)} of {len(declared)} payload layouts compared with Kafka's classes")


def versions(payload: Payload) -> range:
    assert payload.versions.last < NEWEST
    return range(payload.versions.first, payload.versions.last + 1)


@every_payload
def test_what_kafka_writes_is_read_as_the_same_values_and_written_as_the_same_bytes(payload: Payload) -> None:
    for each in written(payload):
        decoded = decode_payload(each.name, each.data)
        assert (decoded.name, decoded.version, decoded.failure) == (each.name, each.version, None)
        assert with_topics_by_name(decoded.values) == each.values
        assert encode_payload(each.name, decoded.values, each.version) == each.data
        of = payload_layout(each.name, each.version)
        assert interpret.read(of, each.data) == (decoded.values, len(each.data)), of
        assert interpret.write(of, decoded.values) == each.data, of


def with_topics_by_name(values: dict[str, Any]) -> dict[str, Any]:
    """Kafka was told names where the bytes of AssignmentInfo refer to a list of topics."""
    if not {"topics", "active_tasks"} <= values.keys():
        return values
    values = deepcopy(values)
    names = {topic["topic_index"]: topic["topic"] for topic in values.pop("topics")}
    for hosts in ("partitions_by_host", "standby_partitions_by_host"):
        for host in values.get(hosts, []):
            for each in host["partitions"]:
                each["topic"] = names[each.pop("topic_index")]
    return values


def test_values_left_out_are_written_as_the_defaults_of_kafka() -> None:
    for payload in PAYLOADS:
        if payload.name in WITHOUT_SCHEMA:
            continue
        for version in versions(payload):
            defaults = next(each for each in written(payload) if each.version == version)
            assert encode_payload(payload.name, {}, version) == defaults.data


def test_the_records_of_a_control_batch_are_read_as_kafka_wrote_them() -> None:
    assert {control.type for control in kafka().controls} == CONTROL_TYPES.keys()
    for control in kafka().controls:
        key, value = control_record(control.key, control.value)
        assert key == ("ControlRecordTypeSchema", 0, {"version": 0, "type": control.type}, None)
        assert value == (control.written.name, 0, control.written.values, None)
        assert CONTROL_TYPES[control.type][0] == control.type_name


def test_a_control_record_of_a_type_to_come_has_a_key_and_no_value_as_kafka_ignores_it() -> None:
    key, value = control_record(b"\0\0\0\x63", b"\1\2\3")
    assert (key.values["type"], value) == (99, None)


def test_every_record_of_the_coordinators_topics_is_read_by_the_type_in_its_key() -> None:
    samples = {each.name: each for each in kafka().written}
    for topic, records in COORDINATOR_TOPICS.items():
        for record in records.values():
            key, value = samples[record.key.name], samples[record.value.name]
            read_key, read_value = coordinator_record(topic, key.data, value.data)
            assert (read_key.name, read_key.values) == (key.name, key.values)
            assert read_value == (value.name, value.version, value.values, None)
            assert coordinator_record(topic, key.data, None) == (read_key, None), "a tombstone"


@pytest.mark.parametrize("key", [None, b"", b"\0", b"\0\x63", b"\xff\xff"])
def test_a_record_of_no_known_type_is_refused_with_its_topic_and_the_known_types(key: bytes | None) -> None:
    with pytest.raises(DecodeError, match="__transaction_state key v0 payload, type at byte 0") as refused:
        coordinator_record("__transaction_state", key, b"")
    if key == b"\0\x63":
        assert refused.value.reason == "a record of type 99; known are 0"


def test_another_topic_than_the_coordinators_is_refused() -> None:
    with pytest.raises(UnknownApi, match="keeps a topic 'orders'; they keep __consumer_offsets"):
        coordinator_record("orders", b"", b"")


def test_a_subscription_of_a_version_to_come_is_read_as_kafka_reads_it() -> None:
    for each in kafka().newer:
        assert decode_payload(each.name, each.data) == (each.name, each.version, each.values, None)


def test_a_version_that_is_not_known_is_refused_with_those_that_are() -> None:
    with pytest.raises(DecodeError, match=r"GroupMetadataValue v9 payload.* version 9; known are 0-4"):
        decode_payload("GroupMetadataValue", b"\0\x09" + bytes(40))
    with pytest.raises(DecodeError, match="version -1; known are 0-3"):
        decode_payload("ConsumerProtocolAssignment", b"\xff\xff" + bytes(40))
    with pytest.raises(EncodeError, match="version 9; known are 0-4"):
        encode_payload("GroupMetadataValue", {"version": 9})
    with pytest.raises(UnknownApi, match="GroupMetadataValue has versions 0-4, not 9"):
        payload_layout("GroupMetadataValue", 9)


def test_a_key_of_another_type_of_record_is_refused() -> None:
    key = encode_payload("GroupMetadataKey", {"group": "billing"})
    assert key == b"\0\2\0\7billing"
    with pytest.raises(DecodeError, match=r"ShareUpdateKey v0 payload.* a record of type 2, not 1"):
        decode_payload("ShareUpdateKey", key)
    with pytest.raises(EncodeError, match="GroupMetadataKey v0 payload, type: a record of type 3, not 2"):
        encode_payload("GroupMetadataKey", {"type": 3})


def test_a_failure_is_told_with_the_payloads_name_version_path_and_offset() -> None:
    data = encode_payload("ConsumerProtocolSubscription", {"topics": ["a", "bb"]}, 1)
    with pytest.raises(DecodeError) as refused:
        decode_payload("ConsumerProtocolSubscription", data[:11])
    assert str(refused.value) == (
        "ConsumerProtocolSubscription v1 payload, topics[1] at byte 11: needs 2 bytes, 0 left"
    )


def test_a_name_matches_in_any_case_and_an_unknown_one_is_refused_with_the_nearest() -> None:
    assert PAYLOADS["consumer_protocol_subscription"].name == "ConsumerProtocolSubscription"
    assert "OffsetCommitKey" in PAYLOADS
    with pytest.raises(UnknownApi, match="no payload is named 'VoterRecord'; nearest: VotersRecord"):
        decode_payload("VoterRecord", b"")


def test_what_members_tell_each_other_is_read_by_protocol_type_and_assignor() -> None:
    streams = encode_payload("SubscriptionInfoData", {"latest_supported_version": 11})
    member = encode_payload("ConsumerProtocolSubscription", {"topics": ["orders"], "user_data": streams})
    subscription = group_payload("consumer", "metadata", member)
    assert subscription is not None
    info = user_data("stream", "metadata", subscription.values["user_data"])
    assert info is not None
    assert (info.name, info.version) == ("SubscriptionInfoData", 11)
    worker = encode_payload("ConnectSubscription", {"url": "http://a", "allocation": None})
    assert group_payload("connect", "metadata", worker) == decode_payload("ConnectSubscription", worker)


def test_what_is_of_no_program_of_kafkas_own_or_empty_is_left_alone() -> None:
    assert group_payload("sr", "metadata", b"{}") is None
    assert group_payload(None, "assignment", b"\0\0") is None
    assert group_payload("consumer", "assignment", b"") is None
    assert user_data("range", "metadata", b"\1") is None
    assert user_data("sticky", "metadata", None) is None


def outcome(name: str, data: bytes) -> Decoded | None:
    """None where refused; nothing else may be raised."""
    try:
        return decode_payload(name, data)
    except DecodeError as error:
        refused = error
    assert (refused.api, refused.side) == (name, "payload")
    assert 0 <= refused.offset <= len(data)
    return None


def interpreted(name: str, version: int, data: bytes) -> Any:
    try:
        return interpret.read(payload_layout(name, version), data)
    except DecodeError:
        return None


@pytest.mark.sampled(30)
@every_payload
def test_a_payload_cut_short_anywhere_is_refused_or_an_older_one(payload: Payload) -> None:
    for each in longest(payload):
        for end in range(len(each.data)):
            short = outcome(each.name, each.data[:end])
            assert short is None or (payload.leads is None and short.version < each.version), end


@every_payload
def test_bytes_left_over_are_refused(payload: Payload) -> None:
    for each in longest(payload):
        assert outcome(each.name, each.data + b"\0\0\0") is None


@every_payload
def test_damaged_payloads_are_refused_or_read_as_the_interpreter_reads_them(payload: Payload) -> None:
    random = Random(SEED)
    for each in longest(payload):
        for _ in range(30):
            at = random.randrange(len(each.data))
            data = each.data[:at] + random.choice(DAMAGE) + each.data[at + 1 :]
            found = outcome(each.name, data)
            if found is not None:
                values, end = interpreted(each.name, found.version, data)
                assert repr(values) == repr(found.values)
                assert end == len(data) or found.values["version"] > found.version


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(PAYLOADS)), st.integers(0, 25), st.binary(max_size=80))
def test_any_bytes_are_values_that_can_be_written_or_a_decode_error(
    payload: Payload, lead: int, rest: bytes
) -> None:
    leads = b"" if payload.leads is None else lead.to_bytes(FIXED[payload.leads.kind][1], "big")
    found = outcome(payload.name, leads + rest)
    if found is not None:
        assert outcome(payload.name, encode_payload(payload.name, found.values, found.version)) == found


@settings(max_examples=200, deadline=None)
@given(key=st.none() | st.binary(max_size=40), value=st.none() | st.binary(max_size=40))
def test_any_key_and_value_are_a_record_or_a_decode_error(key: bytes | None, value: bytes | None) -> None:
    of_topics = (partial(coordinator_record, topic) for topic in COORDINATOR_TOPICS)
    readers: list[Any] = [control_record, *of_topics]
    for read in readers:
        with suppress(DecodeError):
            read(key, value)


def test_names_of_fields_are_unique_in_every_version() -> None:
    for payload in PAYLOADS:
        for version in versions(payload):
            paths = [path for path, _ in all_fields(payload.fields, version)]
            assert len(paths) == len(set(paths)), payload.name
