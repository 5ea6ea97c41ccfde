"""The counts of a session for made traffic: by client, API and version, and by topic, equal frames
included.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from klamm.decoders.headers import REQUEST
from klamm.proxy.config import Metrics
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.memory import NO_LENGTH
from klamm.proxy.session.observing.counters import Stats
from klamm.rules.plan import Wishes
from tests.proxy.traffic import (
    TOPIC_ID,
    Cutting,
    Exchanged,
    api_versions,
    byte_by_byte,
    exchange,
    ground,
    metadata,
    play,
    produce,
    whole,
)


@pytest.mark.parametrize("cut", [whole, byte_by_byte])
def test_errors_topics_and_latency_are_counted_per_lane(cut: Cutting) -> None:
    at = ground()
    play(
        [
            produce(9, 1),
            produce(9, 2, endpoints=False),
            produce(13, 3, endpoints=True),
            produce(9, 4, acks=0),
        ],
        cut,
        at,
    )
    each = at.stats.requests["test", "1", "app", "Produce", 9]
    assert (each.requests, each.responses, each.one_way) == (3, 2, 1)
    assert each.request_bytes == sum(
        len(produce(9, i, acks=a).request) for i, a in ((1, -1), (2, -1), (4, 0))
    )
    assert sum(each.latency.buckets) == 2
    assert at.stats.requests["test", "1", "app", "Produce", 13].errors == {6: 1}
    assert at.stats.topics["test", "orders", "Produce"].requests == 3


def test_an_error_counts_for_each_partition_and_a_request_for_each_of_its_topics() -> None:
    asked = [
        {"name": name, "partition_data": [{"index": part, "records": b""} for part in range(3)]}
        for name in ("orders", "clicks")
    ]
    answered = [
        {"name": name, "partition_responses": [{"index": part, "error_code": code} for part in range(3)]}
        for name, code in (("orders", 6), ("clicks", 0))
    ]
    at = ground()
    play([exchange("Produce", 9, {"acks": -1, "topic_data": asked}, {"responses": answered})], whole, at)
    (each,) = at.stats.requests.values()
    assert (each.requests, each.errors) == (1, {6: 3})
    topics = {topic: (each.requests, each.errors) for (_, topic, _), each in at.stats.topics.items()}
    assert topics == {"orders": (1, {6: 3}), "clicks": (1, {})}


def test_a_version_that_klamm_does_not_know_counts_as_minus_1() -> None:
    at = ground()
    play([Exchanged(REQUEST.pack(11, key, 99, 6) + b"\0\1a", None) for key in (12, 777)], whole, at)
    counted = {(each.api, each.version, each.requests) for each in at.stats.requests.values()}
    assert counted == {("Heartbeat", -1, 1), ("unknown", -1, 1)}


def test_the_software_of_a_client_is_known_from_version_3_of_api_versions_on() -> None:
    at = ground()
    for version in (2, 3, 4):
        play([api_versions(version, [(0, 3, 9)])] * 2, whole, at)
    assert dict(at.stats.software) == {("test", "test", "1.0"): 2}


def test_with_header_metering_errors_and_topics_are_not_counted() -> None:
    at = ground(Wishes("header"))
    play([produce(9, 1), produce(13, 2, endpoints=True), produce(9, 3, acks=0)], whole, at)
    each = at.stats.requests["test", "1", "app", "Produce", 9]
    assert (each.requests, each.responses, each.one_way) == (2, 1, 1)
    assert (each.request_bytes > 0, each.response_bytes > 0, sum(each.latency.buckets)) == (True, True, 1)
    assert [each.errors for each in at.stats.requests.values() if each.errors] == []
    assert not at.stats.topics


def test_topic_ids_are_counted_under_their_names_once_metadata_has_told_them() -> None:
    at = ground()
    play([produce(13, 1), metadata(12, 2, topics=1), produce(13, 3)], whole, at, batch=1)
    counted = {topic: each.requests for (_, topic, api), each in at.stats.topics.items() if api == "Produce"}
    assert counted == {"id:AAECAwQFBgcICQoLDA0ODw": 1, "topic-0": 1}


def test_a_changed_client_id_is_counted_apart() -> None:
    at = ground()
    one = exchange("Heartbeat", 3, {"group_id": "g"}, {}, 1, client_id="a")
    two = exchange("Heartbeat", 3, {"group_id": "g"}, {}, 2, client_id="b")
    play([one, two, one], whole, at)
    assert {each.client_id: each.requests for each in at.stats.requests.values()} == {"a": 2, "b": 1}


def test_no_memo_holds_before_a_frame_was_read() -> None:
    assert ground().frame_limit < NO_LENGTH


def beats(random: Random, version: int, count: int) -> list[Exchanged]:
    """Frames of one length that differ in client, group or error."""
    made = []
    for correlation_id in range(count):
        group, client_id, code = (
            random.choice(["aa", "bb"]),
            random.choice(["app", "job"]),
            random.choice([0, 0, 0, 27]),
        )
        asked = {"group_id": group, "member_id": "m"}
        made.append(exchange("Heartbeat", version, asked, {"error_code": code}, correlation_id, client_id))
    return made


def produced(random: Random, version: int, count: int) -> list[Exchanged]:
    """The same with values that may change in the middle of an answer."""
    made = []
    for correlation_id in range(count):
        names = (
            {"topic_id": random.choice([TOPIC_ID, bytes(16)])}
            if version >= 13
            else {"name": random.choice(["aa", "bb"])}
        )
        asked = {
            "acks": random.choice([-1, 1, 0]),
            "topic_data": [{**names, "partition_data": [{"index": 0, "records": b"xyz"}]}],
        }
        part = {"index": 0, "error_code": random.choice([0, 0, 0, 7]), "base_offset": random.randrange(1000)}
        answered = {"responses": [{**names, "partition_responses": [part]}]}
        made.append(exchange("Produce", version, asked, answered if asked["acks"] else None, correlation_id))
    return made


def counted(at: ClusterContext) -> object:
    by_key = {
        key: (
            each.requests,
            each.responses,
            each.one_way,
            each.request_bytes,
            each.response_bytes,
            each.errors,
        )
        for key, each in at.stats.requests.items()
    }
    return by_key, {key: (each.requests, each.errors) for key, each in at.stats.topics.items()}


@pytest.mark.parametrize("version", [4, 9, 13])
@pytest.mark.parametrize("made", [beats, produced])
def test_frames_that_look_alike_are_counted_as_if_they_came_alone(made: Any, version: int) -> None:
    for seed in range(10):
        exchanges = made(Random(seed), min(version, 4) if made is beats else version, 60)
        runs = [one for one in exchanges for _ in range(Random(seed).choice([1, 6, 25]))]
        alone = ground()
        in_batches = play(runs, whole, alone, batch=1)
        for batch in (None, 5, 8):
            together = ground()
            assert play(runs, whole, together, batch) == in_batches
            assert counted(together) == counted(alone)


@pytest.mark.parametrize("batch", [1, 7, 64])
@pytest.mark.parametrize("pattern", ["ab", "aab", "aaaaaaaab", "abc"])
def test_requests_that_take_turns_are_counted_each_where_it_belongs(pattern: str, batch: int) -> None:
    turns = (pattern * 192)[:192]
    exchanges = [
        produce(9, number, acks=-1 if topic == "a" else 1, topic=topic)
        for number, topic in enumerate(turns, 1)
    ]
    at = ground()
    outcome = play(exchanges, whole, at, batch)
    assert outcome.broker == b"".join(one.request for one in exchanges)
    counted = {each.topic: each.requests for each in at.stats.topics.values()}
    assert counted == {topic: turns.count(topic) for topic in set(turns)}
    (each,) = at.stats.requests.values()
    assert (each.requests, each.responses) == (192, 192)


def test_names_that_are_too_long_for_a_label_count_as_other() -> None:
    stats = Stats()
    assert stats.of_requests("kafka", "1", "x" * 249, "Fetch", 4).client_id == "x" * 249
    assert stats.of_requests("kafka", "1", "x" * 250, "Fetch", 4).client_id == "other"
    assert stats.of_topic("kafka", "x" * 250, "Fetch").topic == "other"
    stats.client_software("kafka", "x" * 250, "1")
    assert dict(stats.software) == {("kafka", "other", "other"): 1}


def test_principals_beyond_the_bound_count_as_other() -> None:
    stats = Stats(max_clients=2)
    for number in (1, 2, 3, 4, 1):
        stats.principal("kafka", f"User:CN={number}", 1)
    stats.principal("kafka", f"User:CN={'long' * 100}", 1)
    stats.principal("other", "User:CN=3", 1)
    assert stats.principals == {
        ("kafka", "User:CN=1"): 2, ("kafka", "User:CN=2"): 1, ("kafka", "other"): 3, ("other", "other"): 1,
    }  # fmt: skip
    stats.principal("kafka", "User:CN=3", -1)
    assert stats.principals["kafka", "other"] == 2


def test_the_201st_client_and_topic_count_as_other_and_those_before_go_on() -> None:
    metrics = Metrics()
    stats = Stats(metrics.clients, metrics.topics)
    named = [f"n{number}" for number in range(201)]
    assert [stats.of_requests("kafka", "1", name, "Fetch", 4).client_id for name in named] == [
        *named[:200],
        "other",
    ]
    assert [stats.of_topic("kafka", name, "Fetch").topic for name in named] == [*named[:200], "other"]
    assert stats.of_requests("kafka", "2", "n0", "Produce", 9).client_id == "n0"
    assert Stats(1).of_requests("kafka", "1", None, "Fetch", 4).client_id == ""
