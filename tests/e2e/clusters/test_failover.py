"""Brokers die, move and join while clients work through klamm: nothing that was acknowledged is lost."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.brokers.kraft import SOON_MISSED, Cluster, kraft_cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, wait_for
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.conversation import ask
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

pytestmark = pytest.mark.brokers

COUNT, PER_S, SIZE, PARTITIONS = 1200, 60, 64, 6
JOINING = 1000001
PRODUCERS: dict[str, dict[str, Any]] = {
    "librdkafka": {"idempotent": True},
    "java": {"idempotent": True},
    "kafka-python": {"acks": "all", "idempotent": True},
}
CONSUMERS: dict[str, dict[str, Any]] = {
    "librdkafka": {"group": "new", "protocol": "consumer"},
    "java": {"group": "classic"},
    "aiokafka": {"group": "aiokafka"},
}
TRANSACTION = {
    "do": "produce",
    "topic": "committed",
    "transactional_id": "long",
    "count": COUNT,
    "per_s": PER_S,
}


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers that acknowledge what two of them hold, internal topics included."""
    settings = {**SOON_MISSED, "min.insync.replicas": "2"}
    with kraft_cluster(tmp_path_factory.mktemp("fragile"), settings=settings) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def in_front(
    fragile: Cluster, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Klamm]:
    """klamm in front of the fragile cluster."""
    with klamm_in_front_of(
        fragile.bootstrap(), inside.host, tmp_path_factory.mktemp("klamm") / "klamm.log"
    ) as klamm:
        yield klamm


def _listeners(klamm: Klamm) -> dict[int, tuple[str, int]]:
    brokers = ask(klamm.address, "Metadata", 12, {"topics": []})["brokers"]
    return {broker["node_id"]: (broker["host"], broker["port"]) for broker in brokers}


def _down(klamm: Klamm) -> set[str]:
    """The brokers of which klamm's metrics say that they are down."""
    series = re.findall(r'klamm_broker_up{broker="(\w+)",cluster="kafka"} 0.0', klamm.get("/metrics"))
    return set(series)


def _written(cluster: Cluster, topic: str) -> int:
    """Records in the topic now, asked for on the brokers themselves; 0 while a leader is missing."""
    reader = Consumer({"bootstrap.servers": cluster.bootstrap(), "group.id": "watcher", "log_level": 0})
    try:
        ends = [
            reader.get_watermark_offsets(TopicPartition(topic, index), timeout=5)
            for index in range(PARTITIONS)
        ]
    except KafkaException:
        return 0
    finally:
        reader.close()
    return sum(high for _, high in ends)


@pytest.mark.timeout(240)
def test_brokers_die_move_and_join_and_nothing_acknowledged_is_lost(
    fragile: Cluster, in_front: Klamm, inside: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("clients")
    topics.create(fragile.bootstrap(), "survives", topics.spread(PARTITIONS))
    topics.create(fragile.bootstrap(), "committed", topics.spread(PARTITIONS))
    before = _listeners(in_front)
    everything = len(PRODUCERS) * COUNT

    def start(name: str, client: str, *actions: dict[str, Any]) -> Process:
        command = programs.command(
            client, in_front.bootstrap, *({"timeout_s": 100, **each} for each in actions)
        )
        return inside.start(folder / f"{name}-{client}.log", *command)

    def until(share: float) -> None:
        wanted = share * everything
        wait_for(lambda: _written(fragile, "survives") >= wanted, f"{wanted:.0f} records written")

    steady = {"do": "produce", "topic": "survives", "count": COUNT, "per_s": PER_S, "size": SIZE}
    reading = {"do": "consume", "topic": "survives", "count": everything, "unique": True, "list": True}
    committed = {"do": "consume", "topic": "committed", "count": COUNT, "isolation": "read_committed"}
    producers = {
        client: start("produce", client, {**steady, "seed": client, **own})
        for client, own in PRODUCERS.items()
    }
    consumers = {client: start("consume", client, {**reading, **own}) for client, own in CONSUMERS.items()}
    transaction = start("transaction", "librdkafka", TRANSACTION, committed)
    running = [*producers.values(), *consumers.values(), transaction]
    try:
        until(0.1)
        fragile.kill(2)
        wait_for(lambda: _down(in_front) == {"2"}, "broker 2 down in the metrics")
        until(0.3)
        fragile.start([2])
        wait_for(lambda: _down(in_front) == set(), "broker 2 up in the metrics")
        until(0.5)
        fragile.start([JOINING])
        topics.move(fragile.bootstrap(), "survives", 0, [JOINING, 2, 3])
        wait_for(lambda: not any(process.running for process in running), "the clients", timeout_s=100)
    finally:
        for process in running:
            process.kill()
    lines = {process: programs.results(process.log.read_text()) for process in running}
    for client, process in producers.items():
        assert [line.get("failed") for line in lines[process]] == [[]], f"{client}\n{process.tail()}"
    written = {
        mark for client in PRODUCERS for mark in records.expected("survives", client, range(COUNT), SIZE)
    }
    for client, process in consumers.items():
        (line,) = lines[process]
        assert set(line["fingerprints"]) == written, f"{client} read {line['count']}\n{process.tail()}"
    produced, consumed = lines[transaction]
    assert produced["failed"] == []
    assert consumed["digest"] == records.digest(records.expected("committed", "seed", range(COUNT)))

    unanswered = [row for row in in_front.counters()["unanswered"] if row["broker"] == "2"]
    assert any(row["reason"] in ("closed by broker", "reset by broker") for row in unanswered), unanswered

    after = _listeners(in_front)
    assert {node_id: after[node_id] for node_id in before} == before
    assert after.keys() == {*before, JOINING}
    assert len(set(after.values())) == 4
