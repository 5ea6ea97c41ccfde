"""A Fetch response of 50 MB whose end names where one partition is led: too large to hold; nothing leaks."""

from typing import Any

import pytest
from confluent_kafka import Producer

from klamm.decoders import decode
from tests.brokers.kraft import Cluster
from tests.e2e import topics
from tests.e2e.conversation import Conversation, ask
from tests.e2e.klamm_process import Klamm

pytestmark = pytest.mark.brokers

PARTITIONS, VALUE_SIZE = 52, 1 << 20
VERSIONS = (16, 18)


@pytest.fixture(scope="module")
def question(kafka: Cluster) -> dict[str, Any]:
    """A Fetch from broker 2 of everything in `large`, which it leads, and of `small`, which 3 leads."""
    topics.create(kafka.bootstrap(), "large", [[2]] * PARTITIONS, **{"max.message.bytes": "2000000"})
    topics.create(kafka.bootstrap(), "small", [[3]])
    producer = Producer({"bootstrap.servers": kafka.bootstrap(), "message.max.bytes": 2_000_000})
    for partition in range(PARTITIONS):
        producer.produce("large", value=bytes([partition]) * VALUE_SIZE, partition=partition)
    assert producer.flush(60) == 0
    metadata = ask(kafka.address(1), "Metadata", 12, {"topics": [{"name": "large"}, {"name": "small"}]})
    ids = {topic["name"]: topic["topic_id"] for topic in metadata["topics"]}
    wanted = [("large", partition) for partition in range(PARTITIONS)] + [("small", 0)]
    return {
        "max_wait_ms": 500,
        "min_bytes": 0,
        "max_bytes": 100 << 20,
        "session_epoch": -1,
        "topics": [
            {
                "topic_id": ids[name],
                "partitions": [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 2 << 20}],
            }
            for name, index in wanted
        ],
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_a_fetch_response_of_50_mb_passes_whole_and_leaks_no_address(
    version: int, question: dict[str, Any], kafka: Cluster, klamm: Klamm, seen_rewritten: list[str]
) -> None:
    nodes = ask(klamm.address, "Metadata", 12, {"topics": []})["brokers"]
    (through,) = [(node["host"], node["port"]) for node in nodes if node["node_id"] == 2]
    with Conversation(kafka.address(2)) as conversation:
        direct = conversation.ask_bytes("Fetch", version, question)
    with Conversation(through) as conversation:
        received = conversation.ask_bytes("Fetch", version, question)
        assert conversation.ask("Metadata", 12, {"topics": []})["brokers"] == nodes
    assert len(direct) > 50 << 20
    assert len(received) == len(direct)
    sent, passed = (decode(body, "Fetch", version, "response") for body in (direct, received))
    host, port = kafka.address(3)
    endpoints = [(node["host"], node["port"]) for node in sent["node_endpoints"]]
    assert endpoints == [(host, port)], "the broker named no endpoint"
    assert passed["responses"] == sent["responses"]
    assert host.encode() + port.to_bytes(4) not in received[-4096:]
    assert all(node["host"] == klamm.host for node in passed["node_endpoints"])
    seen_rewritten.append(
        f"Fetch {version} of {len(received):,} bytes: node_endpoints[], tag 0: {host}:{port} -> not told"
    )
