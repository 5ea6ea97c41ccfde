"""Servers whose behaviour people have reported, with a client that can use them."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders import decode, encode
from tests.brokers.kraft import Cluster
from tests.brokers.processes import free_block, wait_for
from tests.e2e import topics
from tests.e2e.klamm_process import klamm_in_front_of
from tests.strangers.changing import Asked, Body, changing
from tests.strangers.producing import COUNT, PATIENCE_S, produced

pytestmark = pytest.mark.brokers

PORTS = 6  # of klamm, behind its first


@pytest.fixture
def topic(kafka: Cluster) -> str:
    name = f"stranger-{uuid.uuid4().hex[:8]}"
    topics.create(kafka.bootstrap(), name, topics.spread())
    return name


def addresses(kafka: Cluster) -> dict[int, tuple[str, int]]:
    return {node_id: kafka.address(node_id) for node_id in kafka.brokers}


def test_answers_to_acks_0_go_on(kafka: Cluster, topic: str, tmp_path: Path) -> None:
    """Of KoP (streamnative/kop 1875). librdkafka drops them."""

    def to_acks_0(asked: Asked, request: dict[str, Any]) -> bytes:
        rows = [
            {
                **{name: row[name] for name in ("name", "topic_id") if name in row},
                "partition_responses": [
                    {"index": part["index"], "error_code": 0, "base_offset": 0}
                    for part in row["partition_data"]
                ],
            }
            for row in request["topic_data"]
        ]
        return encode({"responses": rows}, "Produce", asked.version, "response")

    log = tmp_path / "klamm.log"
    with (
        changing(addresses(kafka), lambda asked, body: body, to_acks_0) as direct,
        klamm_in_front_of(direct, "127.0.0.1", log, foreseen=["acks_0_answered"]) as klamm,
    ):
        for bootstrap in (direct, klamm.bootstrap):
            producer, errors = produced(bootstrap, topic, "0")
            assert errors == [None] * COUNT

        def all_answered() -> bool:
            counts = [row for row in klamm.counters()["problems"] if row["kind"] == "acks_0_answered"]
            return sum(row["count"] for row in counts) == COUNT

        wait_for(all_answered, "the answers")
        assert producer.list_topics(topic, timeout=PATIENCE_S).topics[topic].error is None


def test_brokers_with_new_ids_take_the_ports_of_those_that_are_gone(
    kafka: Cluster, topic: str, tmp_path: Path
) -> None:
    """Of KoP, where an id is a hash of the broker's address (streamnative/kop 1567)."""
    generation = 0

    def renumbered(value: Any) -> Any:
        return [renumbered(each) for each in value] if isinstance(value, list) else value + 1000 * generation

    def change(asked: Asked, body: bytes) -> Body:
        if asked.api != "Metadata" or not generation:
            return body
        values = decode(body, "Metadata", asked.version, "response")
        for row in values["brokers"]:
            row["node_id"] = renumbered(row["node_id"])
        for row in values["topics"]:
            for part in row["partitions"]:
                ids = {name: renumbered(part[name]) for name in ("leader_id", "replica_nodes", "isr_nodes")}
                part.update(ids)
        return encode(values, "Metadata", asked.version, "response")

    log, first = tmp_path / "klamm.log", free_block("127.0.0.1")
    listen = f"127.0.0.1:{first}-{first + PORTS}"
    with (
        changing(addresses(kafka), change) as direct,
        klamm_in_front_of(direct, "127.0.0.1", log, "--listen", listen, first=first) as klamm,
    ):
        for _ in range(4):
            assert produced(klamm.bootstrap, topic)[1] == [None] * COUNT
            generation += 1
    assert "is gone: port" in log.read_text()
