"""Frames of librdkafka that are paused in front of real brokers: edited, dropped, answered, or left alone."""

import socket
import struct
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from klamm.client import Refused
from klamm.client.front import Front, in_front_of
from klamm.client.types import PausedFrame
from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame
from klamm.proxy.control.intercept import MOST
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.brokers.wire import receive_exactly
from tests.e2e import topics
from tests.e2e.light_traffic import COMMON, LEADER, PATIENCE_S, PROBE, leader, probing

pytestmark = pytest.mark.brokers


@pytest.fixture(scope="module")
def front(kafka: Cluster) -> Iterator[Front]:
    with in_front_of(kafka.bootstrap()) as running:
        yield running


@pytest.fixture
def klamm(front: Front) -> Iterator[Front]:
    front.begin()
    yield front
    front.begin()


@pytest.fixture
def topic(kafka: Cluster) -> str:
    """Led by LEADER."""
    name = f"paused-{uuid.uuid4().hex[:8]}"
    topics.create(kafka.bootstrap(), name, [[LEADER]])
    return name


def paused(klamm: Front) -> PausedFrame:
    """The one frame that is, with its values."""
    (found,) = wait_for(klamm.api.paused, "a paused frame")
    return klamm.api.paused_frame(found.id)


def pause(klamm: Front, api: str, **more: Any) -> Any:
    return klamm.rules({"api": api, "pause": "60s", **more})


def test_what_a_person_makes_of_a_request_is_what_the_cluster_does(klamm: Front, kafka: Cluster) -> None:
    name = f"made-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({**COMMON, "bootstrap.servers": klamm.bootstrap})
    pause(klamm, "CreateTopics")
    made = admin.create_topics([NewTopic(name, 1, 1)])[name]
    one = paused(klamm)
    assert one.values is not None
    (row,) = one.values["topics"]
    assert (row["name"], row["num_partitions"]) == (name, 1)
    klamm.api.resolve(one.id, values={**one.values, "topics": [{**row, "num_partitions": 3}]})
    made.result(PATIENCE_S)
    direct = AdminClient({"bootstrap.servers": kafka.bootstrap()})
    partitions = wait_for(
        lambda: direct.list_topics(name, timeout=PATIENCE_S).topics[name].partitions,
        "a broker that knows the topic",
    )
    assert len(partitions) == 3


def test_a_record_that_is_answered_with_an_error_never_comes_to_the_broker(
    klamm: Front, kafka: Cluster, topic: str
) -> None:
    errors: list[Any] = []
    client = Producer({**COMMON, "bootstrap.servers": klamm.bootstrap})
    pause(klamm, "Produce", times=1)
    client.produce(topic, b"one", on_delivery=lambda error, _: errors.append(error))
    with ThreadPoolExecutor(1) as thread:
        flushed = thread.submit(client.flush, PATIENCE_S)
        klamm.api.resolve(paused(klamm).id, "error", code="POLICY_VIOLATION")
        assert flushed.result() == 0
    assert [error.name() for error in errors] == ["POLICY_VIOLATION"]
    (seen,) = klamm.wait_for("Produce", topic=topic)
    assert (seen.origin, seen.errors) == ("klamm", {"POLICY_VIOLATION": 1})
    reader = Consumer({"bootstrap.servers": kafka.bootstrap(), "group.id": "nobody"})
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=PATIENCE_S) == (0, 0)
    reader.close()


def test_a_dropped_answer_never_comes_and_the_client_gets_over_it(klamm: Front, topic: str) -> None:
    impatient = {**COMMON, "bootstrap.servers": klamm.bootstrap, "client.id": PROBE}
    client = AdminClient({**impatient, "socket.timeout.ms": 2000})
    client.list_topics(timeout=PATIENCE_S)
    pause(klamm, "Metadata", side="response", client=PROBE, times=1)
    with ThreadPoolExecutor(1) as thread:
        answer = thread.submit(client.list_topics, topic, PATIENCE_S)
        one = paused(klamm)
        klamm.api.resolve(one.id, "drop")
        assert leader(answer.result(), topic) == LEADER
    asked = klamm.exchanges("Metadata", client_id=PROBE, topic=topic)
    assert {each.connection for each in asked} - {one.connection}  # it was given up for another


def test_a_frame_that_nobody_resolves_goes_on_as_it_was(klamm: Front, topic: str) -> None:
    with probing(klamm.bootstrap) as ask_for:
        klamm.rules({"api": "Metadata", "client": PROBE, "pause": "700ms"})
        answer = ask_for(topic)
        one = paused(klamm)
        assert one.until - one.since == pytest.approx(0.7, abs=0.01)
        assert leader(answer.result(PATIENCE_S), topic) == LEADER
    wait_for(lambda: f"nobody resolved {one.id} in 0.7 s" in klamm.process.log_tail(), "a line of the log")


def test_what_was_held_for_a_client_that_went_away_is_held_no_more(klamm: Front, topic: str) -> None:
    pause(klamm, "Metadata", client="by-hand")
    with pipelined(klamm, topic, 1) as connection:
        one = paused(klamm)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST
    wait_for(lambda: not klamm.api.paused(), "no paused frame")
    with pytest.raises(Refused, match="no frame"):
        klamm.api.resolve(one.id)


def test_more_frames_than_may_be_held_go_on_in_their_turn(klamm: Front, topic: str) -> None:
    pause(klamm, "Metadata", client="by-hand")
    most = MOST // 2  # a connection leaves as many places as it takes
    with pipelined(klamm, topic, most + 5) as connection:
        wait_for(lambda: len(klamm.api.paused()) == most, "as many as may be")
        wait_for(
            lambda: f"{most} of this connection: this one goes on" in klamm.process.log_tail(),
            "a line of the log",
        )
        for one in klamm.api.paused():
            klamm.api.resolve(one.id)
        assert [answered(connection) for _ in range(most + 5)] == list(range(1, most + 6))
    assert klamm.api.paused() == []


def pipelined(klamm: Front, topic: str, count: int) -> socket.socket:
    """A connection on which so many Metadata requests are sent at once."""
    host, _, port = klamm.bootstrap.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
    body = encode({"topics": [{"name": topic}]}, "Metadata", 12, "request")
    frames = (request_frame(API["Metadata"], 12, number, "by-hand", body) for number in range(1, count + 1))
    connection.sendall(b"".join(frames))
    return connection


def answered(connection: socket.socket) -> int:
    """The correlation id of the next answer."""
    (size,) = struct.unpack(">i", receive_exactly(connection, 4))
    return int(struct.unpack_from(">i", receive_exactly(connection, size))[0])
