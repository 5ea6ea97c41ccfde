"""Answers that are not quite Kafka's, to real clients: what works directly works through klamm."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from klamm.decoders.headers import refuses_version
from tests.brokers.kraft import Cluster
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.klamm_process import klamm_in_front_of
from tests.strangers.changing import Asked, Body, Change, Late, changing
from tests.strangers.producing import COUNT, produced

pytestmark = pytest.mark.brokers

CLIENTS = ["librdkafka", "java", "kafkajs", "aiokafka", "kafka-python"]
PATIENCE_S = 8  # with what may never work; a busy machine needs a second for what takes a tenth


def of_api_versions(change: Change) -> Change:
    """Refusals of a version stay as they are."""

    def changed(asked: Asked, body: bytes) -> Body:
        return change(asked, body) if asked.api == "ApiVersions" and not refuses_version(body) else body

    return changed


def without_throttle_time(asked: Asked, body: bytes) -> bytes:
    return body[:-4] if asked.version in (1, 2) else body


def refused(asked: Asked, body: bytes) -> bytes:
    """Error 35 with version 0's layout to versions above 2: clients ask again with an older one."""
    return body if asked.version <= 2 else bytes.fromhex("0023 00000001 0012 0000 0002")


STRANGERS: dict[str, Change] = {
    "Kafka": lambda asked, body: body,
    "ApiVersions 1 and 2 without throttle_time_ms": of_api_versions(
        lambda asked, body: refused(asked, without_throttle_time(asked, body))
    ),
    "ApiVersions with bytes behind its end": of_api_versions(lambda asked, body: body + bytes(4)),
    "ApiVersions 3 without its last tagged section": of_api_versions(
        lambda asked, body: body[:-1] if asked.version >= 3 else body
    ),
    "ApiVersions with an error and nothing else": of_api_versions(lambda asked, body: b"\0\x1d"),
    "all answers with bytes behind their ends": lambda asked, body: body + bytes(4),
    "ApiVersions with a null array": of_api_versions(
        lambda asked, body: b"\0\0" + (bytes(6) if asked.version >= 3 else b"\xff" * 4)
    ),
}


class Outcome(NamedTuple):
    """How many records of a client were acknowledged, and how many it read; -1: it failed."""

    acknowledged: int
    read: int


FAILED = Outcome(-1, -1)
Ground = tuple[str, str, str]  # the stranger, its address, and that of klamm in front of it


@pytest.fixture(scope="module", params=STRANGERS)
def ground(
    request: pytest.FixtureRequest, kafka: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Ground]:
    brokers = {node_id: kafka.address(node_id) for node_id in kafka.brokers}
    log = tmp_path_factory.mktemp("strangers") / "klamm.log"
    with (
        changing(brokers, STRANGERS[request.param]) as direct,
        klamm_in_front_of(direct, "127.0.0.1", log, foreseen=["undecodable"]) as klamm,
    ):
        yield request.param, direct, klamm.bootstrap


@pytest.mark.parametrize("late", ["Produce", "Fetch"])
def test_answers_in_another_order_belong_to_their_requests(late: str, kafka: Cluster, tmp_path: Path) -> None:
    """Of librdkafka, which reads them: every other Produce answer is late, and all of Fetch."""
    numbers = count()

    def change(asked: Asked, body: bytes) -> Body:
        return Late(body) if asked.api == late and (late == "Fetch" or next(numbers) % 2 == 0) else body

    brokers = {node_id: kafka.address(node_id) for node_id in kafka.brokers}
    log = tmp_path / "klamm.log"
    topic = f"stranger-{uuid.uuid4().hex[:8]}"
    topics.create(kafka.bootstrap(), topic, topics.spread())
    with (
        changing(brokers, change) as direct,
        klamm_in_front_of(direct, "127.0.0.1", log, foreseen=["out_of_order"]) as klamm,
    ):
        for times, bootstrap in enumerate((direct, klamm.bootstrap), start=1):
            assert produced(bootstrap, topic)[1] == [None] * COUNT
            assert read_and_ends(bootstrap, topic, times * COUNT) == (times * COUNT, times * COUNT)
        assert '"out_of_order"' in log.read_text()


def read_and_ends(bootstrap: str, topic: str, wanted: int) -> tuple[int, int]:
    """The records that librdkafka reads, and the sum of the ends of the partitions, which it asks for while a
    Fetch waits on the same connection.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False})
    partitions = [TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(3)]
    consumer.assign(partitions)
    read = 0
    while (message := consumer.poll(2 * PATIENCE_S)) is not None and (read := read + 1) < wanted:
        assert message.error() is None
    ends = [consumer.get_watermark_offsets(one, timeout=2 * PATIENCE_S)[1] for one in partitions]
    consumer.close()
    return read, sum(ends)


def outcome(client: str, patience_s: float, bootstrap: str, topic: str) -> Outcome:
    """Of records that a client produces to the topic, and reads from it in a group."""
    actions: list[dict[str, Any]] = [
        {"do": "produce", "topic": topic, "count": COUNT, "timeout_s": patience_s},
        {"do": "consume", "topic": topic, "count": COUNT, "group": topic, "timeout_s": patience_s},
    ]
    command = programs.command(client, bootstrap, *actions)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3 * patience_s, check=False)
    except subprocess.TimeoutExpired:  # the Java client has no end for a broker that it cannot read
        return FAILED
    seen = programs.results(done.stdout)
    if done.returncode or len(seen) < len(actions):
        return FAILED
    return Outcome(seen[0]["acknowledged"], seen[1]["count"])


@pytest.mark.sampled(12)
@pytest.mark.parametrize("client", CLIENTS)
def test_what_works_directly_works_through_klamm(client: str, ground: Ground, kafka: Cluster) -> None:
    stranger, *addresses = ground
    names = [f"stranger-{uuid.uuid4().hex[:8]}" for _ in addresses]
    for name in names:
        topics.create(kafka.bootstrap(), name, topics.spread())
    patience_s = 10 * PATIENCE_S if stranger == "Kafka" else PATIENCE_S
    with ThreadPoolExecutor(len(addresses)) as pool:
        direct, through = pool.map(partial(outcome, client, patience_s), addresses, names)
    assert through == direct
    assert stranger != "Kafka" or direct == Outcome(COUNT, COUNT)
