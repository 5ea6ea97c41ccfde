"""The parts of a request that are compared, and the recorded answer that is chosen for it."""

from __future__ import annotations

from typing import Any

from klamm.decoders import API, decode, encode
from klamm.replay.serving.matching import Key, Story, matter, nearest, spoken

TOPIC_ID = bytes(range(16))
NAMES = {TOPIC_ID: "orders"}


def key(api: str, version: int, **values: Any) -> Key:
    """As the request comes off the wire."""
    request = decode(encode(values, api, version, "request"), api, version, "request")
    return matter(API[api], version, request, NAMES.get)


def topics(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def test_neither_the_version_nor_the_order_of_topics_counts() -> None:
    assert key("Metadata", 1, topics=topics("a", "b")) == key("Metadata", 12, topics=topics("b", "a"))
    assert key("Metadata", 12, topics=topics("a")) != key("Metadata", 12, topics=topics("b"))
    assert key("DeleteTopics", 1, topic_names=["a"]) == key("DeleteTopics", 6, topics=topics("a"))


def test_a_topic_goes_by_its_name_where_it_is_asked_for_by_its_id() -> None:
    by_id = key("Metadata", 12, topics=[{"name": None, "topic_id": TOPIC_ID}])
    assert by_id == key("Metadata", 12, topics=topics("orders"))
    assert key("DeleteTopics", 6, topics=[{"name": None, "topic_id": bytes(15) + b"\1"}]) != key(
        "DeleteTopics", 6, topics=[{"name": None, "topic_id": TOPIC_ID}]
    )


def test_all_topics_are_other_than_none_and_version_0_asks_for_all_with_an_empty_list() -> None:
    assert key("Metadata", 12, topics=None) != key("Metadata", 12, topics=[])
    assert key("Metadata", 0, topics=[]) == key("Metadata", 12, topics=None)


def test_patience_and_ids_that_a_broker_gave_out_do_not_count() -> None:
    first = {"transactional_id": "tx", "producer_id": 7, "producer_epoch": 0, "committed": True}
    again = first | {"producer_id": 2000, "producer_epoch": 3}
    assert key("EndTxn", 3, **first) == key("EndTxn", 3, **again)
    assert key("EndTxn", 3, **first) != key("EndTxn", 3, **first | {"committed": False})
    new = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    assert key("InitProducerId", 4, **new) == key("InitProducerId", 4, **new | {"transaction_timeout_ms": 1})


def test_offsets_and_partitions_count() -> None:
    def delete(partition: int, offset: int) -> Key:
        rows = [{"partition_index": partition, "offset": offset}]
        return key("DeleteRecords", 2, topics=[{"name": "a", "partitions": rows}])

    assert len({delete(0, 5), delete(0, 6), delete(1, 5)}) == 3


def test_a_story_is_told_in_its_order_and_its_last_answer_again() -> None:
    story: Story[str] = Story()
    for number, answer in ((1, "unknown"), (4, "known"), (9, "gone")):
        story.add("topic", number, answer)
    answers = [story.tell("topic") for _ in range(4)]
    assert [one and one.answer for one in answers] == ["unknown", "known", "gone", "gone"]
    assert story.tell("topic", again=False) is None
    assert story.tell("other") is None


def test_what_was_recorded_later_than_the_story_has_come_is_preferred() -> None:
    story: Story[str] = Story()
    for number, answer in ((1, "unknown"), (2, "still unknown"), (4, "known")):
        story.add("topic", number, answer)
    first, after_creation = story.tell("topic"), story.tell("topic", after=3)
    assert first is not None
    assert first.answer == "unknown"
    assert after_creation is not None
    assert after_creation.answer == "known"


def test_the_nearest_shares_the_most() -> None:
    keys = [key("Metadata", 12, topics=topics(*names)) for names in (["a"], ["a", "b"], ["x", "y"])]
    assert nearest(key("Metadata", 12, topics=topics("b", "c")), keys) == keys[1]
    assert nearest(keys[0], []) is None


def test_a_key_is_said_in_few_words() -> None:
    assert spoken(key("Metadata", 12, topics=topics("b", "a"))) == "topics.topic=a, topics.topic=b"
    many = key("Metadata", 12, topics=topics(*"abcdefgh"))
    assert spoken(many, most=2) == "topics.topic=a, topics.topic=b and 6 more"
    assert spoken(key("FindCoordinator", 6, key_type=0, coordinator_keys=["g"])) == "coordinator_keys=g"
