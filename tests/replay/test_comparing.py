"""Answers meet field by field; what must differ between two clusters is no difference."""

from typing import Any

import pytest

from klamm.decoders import API
from klamm.decoders.records import Batch, Record, write
from klamm.replay.comparing import Differences
from klamm.replay.pairs import pairs, together
from klamm.replay.renaming import Renaming

Values = dict[str, Any]
Found = dict[tuple[str, str], tuple[str, str, int]]


def differences(
    name: str, version: int, recorded: Values, now: Values, *, offsets: bool = False, blank: bool = False
) -> dict[str, tuple[str, str, int]]:
    """Path -> recorded, now, times."""
    api, found = API[name], Differences(offsets)
    renaming = Renaming(lambda node: node)
    met = list(pairs(api.response, version, recorded, now, renaming, name == "Fetch"))
    found.compare(api, version, met, 1, 7, blank)
    assert all((one.api, one.connection, one.exchange) == (name, 1, 7) for one in found.found.values())
    return {one.path: (one.recorded, one.now, one.count) for one in found.found.values()}


def topic(name: str, *parts: tuple[int, int], **more: Any) -> Values:
    rows = [{"partition_index": index, "error_code": error} for index, error in parts]
    return {"name": name, "error_code": 0, "partitions": rows, **more}


def test_ids_addresses_times_and_who_leads_are_no_differences() -> None:
    def answer(node: int, host: str, topic_id: bytes) -> Values:
        parts = [{"partition_index": 0, "leader_id": node, "replica_nodes": [node], "leader_epoch": node}]
        return {
            "throttle_time_ms": node,
            "brokers": [{"node_id": node, "host": host, "port": 9092}] * node,
            "cluster_id": host,
            "controller_id": node,
            "topics": [{"name": "t", "topic_id": topic_id * 16, "partitions": parts}],
        }

    assert differences("Metadata", 12, answer(1, "a", b"1"), answer(2, "b", b"2")) == {}


def test_elements_meet_by_what_they_are_about_and_not_by_their_place() -> None:
    recorded = {"topics": [topic("a", (0, 0), (1, 3)), topic("b", (0, 0))]}
    now = {"topics": [topic("b", (0, 0)), topic("a", (1, 3), (0, 0))]}
    assert differences("Metadata", 1, recorded, now) == {}


def test_errors_are_told_by_name_with_how_often_and_the_first() -> None:
    recorded = {"topics": [topic("a", (0, 0), (1, 0), (2, 0))]}
    now = {"topics": [topic("a", (0, 6), (1, 0), (2, 3))]}
    found = differences("Metadata", 1, recorded, now)
    assert found == {"topics[].partitions[].error_code": ("NONE", "NOT_LEADER_OR_FOLLOWER", 2)}


def test_what_only_one_has_is_told() -> None:
    found = differences(
        "Metadata", 1, {"topics": [topic("a"), topic("b")]}, {"topics": [topic("b"), topic("c")]}
    )
    assert found == {"topics[]": ("a", "absent", 2)}
    rows = [{"api_key": 3, "min_version": 0, "max_version": most} for most in (12, 13)]
    found = differences("ApiVersions", 0, {"api_keys": rows[:1]}, {"api_keys": rows[1:]})
    assert found == {"api_keys[].max_version": ("12", "13", 1)}


def test_what_follows_from_another_error_is_not_told_too() -> None:
    recorded = {"error_code": 0, "producer_id": 4, "producer_epoch": 0}
    now = {"error_code": 15, "producer_id": -1, "producer_epoch": -1}
    found = differences("InitProducerId", 4, recorded, now)
    assert found == {"error_code": ("NONE", "COORDINATOR_NOT_AVAILABLE", 1)}


def test_an_id_where_there_was_none_is_told() -> None:
    recorded = {"error_code": 0, "session_id": 5, "responses": []}
    found = differences("Fetch", 12, recorded, recorded | {"session_id": 0})
    assert found == {"session_id": ("an id", "none", 1)}


def test_offsets_are_compared_where_that_is_asked_for() -> None:
    def answer(offset: int) -> Values:
        part = {"partition_index": 0, "error_code": 0, "timestamp": offset, "offset": offset}
        return {"topics": [{"name": "t", "partitions": [part]}]}

    assert differences("ListOffsets", 1, answer(4), answer(5)) == {}
    found = differences("ListOffsets", 1, answer(4), answer(5), offsets=True)
    assert found == {"topics[].partitions[].offset": ("4", "5", 1)}


def test_members_that_are_called_otherwise_meet_in_their_places() -> None:
    def answer(*members: str) -> Values:
        rows = [{"member_id": one, "metadata": b"m"} for one in members]
        return {"generation_id": 3, "protocol_name": "range", "leader": members[0], "members": rows}

    assert differences("JoinGroup", 2, answer("a-1", "b-1"), answer("a-2", "b-2")) == {}
    found = differences("JoinGroup", 2, answer("a-1", "b-1"), answer("a-2"))
    assert found == {"members[]": ("b-1", "absent", 1)}


def test_partitions_that_are_assigned_by_an_earlier_heartbeat_are_no_difference() -> None:
    topics = [{"topic_id": b"t" * 16, "partitions": [0]}]
    none, some = ({"member_epoch": 1, "assignment": one} for one in (None, {"topic_partitions": topics}))
    empty = {"member_epoch": 1, "assignment": {"topic_partitions": []}}
    for before in (none, empty):
        assert differences("ConsumerGroupHeartbeat", 0, before, some) == {}
        assert len(differences("ConsumerGroupHeartbeat", 0, some, before)) == 1


def test_messages_of_errors_and_numbers_of_replicas_are_no_differences() -> None:
    def answer(message: str, replicas: int) -> Values:
        topic = {"name": "t", "error_code": 36, "error_message": message, "replication_factor": replicas}
        return {"topics": [topic]}

    assert differences("CreateTopics", 5, answer("it exists", 3), answer("Topic 't' already exists", 1)) == {}


def test_an_error_that_passes_by_waiting_is_no_difference_but_a_gap_in_sequence_numbers_is() -> None:
    def answer(error: int) -> Values:
        return {"topics": [topic("a", (0, error))]}

    assert differences("Metadata", 1, answer(5), answer(0)) == {}
    found = differences("Metadata", 1, answer(45), answer(0))
    assert found == {"topics[].partitions[].error_code": ("OUT_OF_ORDER_SEQUENCE_NUMBER", "NONE", 1)}


def fetched(*records: Record, base: int = 0, error: int = 0, first: int = 0) -> Values:
    moved = [Record(base + index, 9 + base, one.key, one.value) for index, one in enumerate(records)]
    data = write(Batch(), moved) if moved else b""
    part = {"partition_index": 0, "error_code": error, "high_watermark": first, "records": data}
    return {"error_code": 0, "session_id": 1, "responses": [{"topic": "t", "partitions": [part]}]}


A, B, C = (Record(key=b"k", value=value) for value in (b"a", b"b", b"cc"))
RECORDS = "responses[].partitions[].records"


@pytest.mark.parametrize(
    ("recorded", "now", "expected"),
    [
        (fetched(A, B), fetched(A, B, C, first=9), {}),
        (fetched(A, B), fetched(A, B, base=70), {}),
        (fetched(), fetched(A), {}),
        (fetched(A, B), fetched(A), {RECORDS: ("2 records", "1 of them", 1)}),
        (fetched(A, B), fetched(), {RECORDS: ("2 records", "0 of them", 1)}),
        (
            fetched(A, B),
            fetched(A, C),
            {RECORDS: ("a record key 1 bytes, value 1 bytes", "key 1 bytes, value 2 bytes", 1)},
        ),
    ],
)
def test_fetched_records_are_those_recorded_or_more(recorded: Values, now: Values, expected: Any) -> None:
    assert differences("Fetch", 11, recorded, now) == expected
    assert differences("Fetch", 11, recorded, now, blank=True) == {}


def test_partitions_that_a_session_leaves_out_are_unchanged() -> None:
    nothing = {"error_code": 0, "session_id": 1, "responses": []}
    assert differences("Fetch", 11, fetched(), nothing) == {}
    assert differences("Fetch", 11, nothing, fetched(A)) == {}
    found = differences("Fetch", 11, nothing, fetched(error=6))
    assert found == {"responses[].partitions[].error_code": ("NONE", "NOT_LEADER_OR_FOLLOWER", 1)}
    assert differences("Fetch", 11, fetched(A), nothing) == {RECORDS: ("1 records", "0 of them", 1)}


def test_answers_to_parts_of_a_request_are_one_answer() -> None:
    one = {"throttle_time_ms": 0, "topics": [topic("a", (0, 0), (1, 6)), topic("b", (0, 0))]}
    other = {"throttle_time_ms": 4, "topics": [topic("a", (1, 0), (2, 3)), topic("c")]}
    both = together(API["Metadata"].response, 3, [one, other])
    assert both["throttle_time_ms"] == 4
    assert both["topics"] == [topic("a", (0, 0), (1, 0), (2, 3)), topic("b", (0, 0)), topic("c")]
