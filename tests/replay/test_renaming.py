"""Recorded ids become those of another cluster: in requests, by what answers have taught."""

from typing import Any

import pytest

from klamm.decoders import API
from klamm.decoders.records import Batch, Record, batches, write
from klamm.decoders.schema import all_fields
from klamm.replay.meanings import DIFFERING, KEYS, MEANINGS, OFFSETS, OWNERS, meaning
from klamm.replay.pairs import pairs
from klamm.replay.renaming import Renaming

RECORDED_ID, NEW_ID = bytes(range(16)), bytes(range(16, 32))


def taught(name: str, version: int, recorded: dict[str, Any], now: dict[str, Any], of: Renaming) -> None:
    for pair in pairs(API[name].response, version, recorded, now, of):
        kind = meaning(pair.field)
        if kind == "topic_id":
            of.learn_topic(pair.recorded, pair.now, pair.beside["name"])
        elif kind is not None:
            of.learn(kind, pair.owner, pair.recorded, pair.now)


def renamed(name: str, version: int, of: Renaming, **values: Any) -> dict[str, Any]:
    return of.request(API[name].request, version, values)


@pytest.fixture
def renaming() -> Renaming:
    return Renaming({1: 11, 2: 12}.get)  # type: ignore[arg-type]


def test_every_name_that_is_listed_is_in_the_tables() -> None:
    there = {
        f.name
        for api in API
        for fields in (api.request, api.response)
        for version in range(api.versions.first, api.versions.last + 1)
        for _, f in all_fields(fields, version)
    }
    assert {*MEANINGS, *OWNERS, *OWNERS.values(), *DIFFERING, *OFFSETS, *KEYS} - there == set()


def test_what_nothing_is_known_of_stays(renaming: Renaming) -> None:
    asked = {"transactional_id": "t", "producer_id": 5, "producer_epoch": 2, "committed": True}
    assert renamed("EndTxn", 3, renaming, **asked) == asked


def test_a_producer_has_the_id_and_the_epochs_that_it_was_given_last(renaming: Renaming) -> None:
    given = {"error_code": 0, "producer_id": 5, "producer_epoch": 2}
    taught("InitProducerId", 4, given, {"error_code": 0, "producer_id": 700, "producer_epoch": 0}, renaming)
    assert renaming.producer(5, 2) == (700, 0)
    assert renaming.producer(5, 3) == (700, 1)  # counted up by the producer itself
    ended = {"error_code": 0, "producer_id": 5, "producer_epoch": 3}
    taught("EndTxn", 5, ended, {"error_code": 0, "producer_id": 700, "producer_epoch": 9}, renaming)
    assert renaming.producer(5, 3) == (700, 9)
    assert renaming.producer(-1, -1) == (-1, -1)


def test_producers_are_renamed_in_record_batches(renaming: Renaming) -> None:
    given = {"error_code": 0, "producer_id": 5, "producer_epoch": 2}
    taught("InitProducerId", 4, given, {"error_code": 0, "producer_id": 700, "producer_epoch": 0}, renaming)
    data = write(Batch(producer_id=5, producer_epoch=2, base_sequence=0), [Record(value=b"v")])
    part = {"index": 0, "records": data}
    asked = {"acks": -1, "timeout_ms": 1, "topic_data": [{"name": "t", "partition_data": [part]}]}
    found = renamed("Produce", 9, renaming, **asked)["topic_data"][0]["partition_data"][0]["records"]
    (batch,) = batches(found)
    assert (batch.producer_id, batch.producer_epoch, batch.crc_ok) == (700, 0, True)
    assert part["records"] is data


def test_a_failed_answer_teaches_nothing(renaming: Renaming) -> None:
    refused = {"error_code": 14, "producer_id": -1, "producer_epoch": -1}
    taught("InitProducerId", 4, {"error_code": 0, "producer_id": 5, "producer_epoch": 2}, refused, renaming)
    assert renaming.producer(5, 2) == (5, 2)


def test_members_and_their_generations_are_renamed_member_by_member(renaming: Renaming) -> None:
    for member, generation, now in (("a-1", 4, 1), ("b-1", 4, 2)):
        joined = {"generation_id": generation, "leader": "a-1", "member_id": member, "members": []}
        new = {"generation_id": now, "leader": "new-a-1", "member_id": f"new-{member}", "members": []}
        taught("JoinGroup", 5, joined, new, renaming)
    asked = {"group_id": "g", "generation_id": 4, "member_id": "b-1", "group_instance_id": None}
    assert renamed("Heartbeat", 3, renaming, **asked) == asked | {"generation_id": 2, "member_id": "new-b-1"}
    given = [{"member_id": "a-1", "assignment": b"x"}, {"member_id": "b-1", "assignment": b"y"}]
    synced = renamed("SyncGroup", 3, renaming, **asked, assignments=given)
    assert [one["member_id"] for one in synced["assignments"]] == ["new-a-1", "new-b-1"]


def test_the_epochs_at_which_a_member_joins_and_leaves_stay(renaming: Renaming) -> None:
    beat = {"error_code": 0, "member_id": "m", "member_epoch": 3, "assignment": None}
    taught("ConsumerGroupHeartbeat", 0, beat, beat | {"member_epoch": 1}, renaming)
    for epoch, now in ((0, 0), (-1, -1), (3, 1)):
        asked = renamed(
            "ConsumerGroupHeartbeat", 0, renaming, group_id="g", member_id="m", member_epoch=epoch
        )
        assert asked["member_epoch"] == now


def test_topic_ids_are_those_of_the_topics_names(renaming: Renaming) -> None:
    def answer(*topics: tuple[str, bytes]) -> dict[str, Any]:
        topic_rows = [{"name": name, "topic_id": topic_id, "partitions": []} for name, topic_id in topics]
        return {"brokers": [], "topics": topic_rows}

    recorded = answer(("other", NEW_ID[::-1]), ("t", RECORDED_ID))
    taught("Metadata", 12, recorded, answer(("t", NEW_ID), ("other", RECORDED_ID[::-1])), renaming)
    topics = [{"topic_id": RECORDED_ID, "partitions": []}]
    assert renamed("Fetch", 13, renaming, topics=topics)["topics"][0]["topic_id"] == NEW_ID
    assert renaming.topic_names[RECORDED_ID] == "t"


def test_leader_epochs_are_learned_by_partition_and_are_else_not_checked(renaming: Renaming) -> None:
    def answer(epoch: int) -> dict[str, Any]:
        part = {"partition_index": 0, "leader_id": 1, "leader_epoch": epoch}
        return {"brokers": [], "topics": [{"name": "t", "partitions": [part]}]}

    taught("Metadata", 9, answer(17), answer(2), renaming)
    parts = [{"partition_index": index, "current_leader_epoch": 17, "timestamp": -1} for index in (0, 1)]

    def epochs() -> list[int]:
        asked = renamed("ListOffsets", 7, renaming, topics=[{"name": "t", "partitions": parts}])
        return [part["current_leader_epoch"] for part in asked["topics"][0]["partitions"]]

    assert epochs() == [2, -1]
    renaming.forget_leader_epochs()
    assert epochs() == [-1, -1]


def test_nodes_are_replaced_also_where_they_name_a_resource(renaming: Renaming) -> None:
    made = [{"name": "t", "assignments": [{"partition_index": 0, "broker_ids": [2, 1]}]}]
    asked = renamed("CreateTopics", 5, renaming, topics=made)
    assert asked["topics"][0]["assignments"][0]["broker_ids"] == [12, 11]
    resources = [{"resource_type": kind, "resource_name": "2"} for kind in (2, 4, 8)]
    found = renamed("DescribeConfigs", 4, renaming, resources=resources)["resources"]
    assert [one["resource_name"] for one in found] == ["2", "12", "12"]
