"""Batches that real brokers keep, made by us and by real clients, asked for by hand and read here."""

import subprocess
import time
from typing import Any

import pytest

from klamm.decoders.payloads import control_record
from klamm.decoders.records import (
    CODECS,
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    Batch,
    Record,
    batches,
    records,
    valid_bytes,
    write,
)
from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.brokers.zookeeper import OldCluster
from tests.clients import programs
from tests.clients import records as sent
from tests.e2e import topics
from tests.e2e.conversation import Conversation, ask
from tests.e2e.paths import Address

pytestmark = pytest.mark.brokers

COUNT = 60
NOT_YET = 3, 6  # errors of a new leader, for a moment after other brokers know of it
NOW_MS = int(time.time() * 1000)
OLD_CODECS = CODECS[:4]
OLD_MAGICS = {"0.8.2.2": (0,), "0.10.1.1": (0, 1)}
PRODUCE = {0: 0, 1: 2, 2: 9}  # the version of the API for each magic
FETCH = {0: 0, 1: 2, 2: 12}
CLIENTS = {
    "librdkafka": CODECS[:5],
    "aiokafka": CODECS[:5],
    "java": CODECS[:5],
    "kafka-python": ("none", "gzip", "lz4", "zstd"),  # its snappy needs a package of its own
}


def some(magic: int, seed: str) -> list[Record]:
    """With null and empty keys and values, one large enough for several blocks of any codec."""
    found = []
    for index in range(COUNT):
        key, value, headers = sent.record(seed, index, size=100_000 if index == 7 else 0, headers=magic == 2)
        found.append(Record(index, -1 if magic == 0 else NOW_MS + index, key, value, tuple(headers)))
    return found


def leader(address: Address, topic: str) -> Address | None:
    """Of partition 0, which is made by being asked for where brokers do that."""
    answer = ask(address, "Metadata", 0, {"topics": [{"name": topic}]})
    nodes = {node["node_id"]: (node["host"], node["port"]) for node in answer["brokers"]}
    for found in answer["topics"][0]["partitions"]:
        if found["partition_index"] == 0:
            return nodes.get(found["leader_id"])
    return None


def produce(address: Address, topic: str, magic: int, data: bytes) -> None:
    parts = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    values = {"acks": -1, "timeout_ms": 10_000, "topic_data": parts}

    def taken() -> bool:
        answer = ask(address, "Produce", PRODUCE[magic], values)
        code = answer["responses"][0]["partition_responses"][0]["error_code"]
        assert code in (0, *NOT_YET), code
        return bool(code == 0)

    wait_for(taken, f"the leader of {topic} to know that it is")


def fetch(conversation: Conversation, version: int, topic: str, offset: int, most: int) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": most}
    values = {"max_wait_ms": 500, "min_bytes": 1, "topics": [{"topic": topic, "partitions": [partition]}]}
    found: dict[str, Any] = conversation.ask("Fetch", version, values)["responses"][0]["partitions"][0]
    assert found["error_code"] == 0
    return found


def kept(address: Address, topic: str, version: int) -> list[tuple[Batch, list[Record]]]:
    """All that partition 0 holds."""
    everything: list[tuple[Batch, list[Record]]] = []
    offset, end = 0, 1
    with Conversation(address) as conversation:
        while offset < end:
            answer = fetch(conversation, version, topic, offset, 8 << 20)
            end = answer["high_watermark"]
            for batch in batches(answer["records"]):
                everything.append((batch, list(records(batch))))
                offset = batch.last_offset + 1
    assert all(batch.crc_ok for batch, _ in everything)
    return everything


def contents(found: list[Record]) -> list[tuple[Any, ...]]:
    return [(record.key, record.value, tuple(record.headers)) for record in found]


def old_leader(old_kafka: OldCluster, topic: str) -> Address:
    any_broker = "127.0.0.1", old_kafka.ports[0]
    return wait_for(lambda: leader(any_broker, topic), f"a leader of {topic}", old_kafka.processes)


def test_old_brokers_keep_message_sets_written_here_and_answer_with_the_same(old_kafka: OldCluster) -> None:
    for magic in OLD_MAGICS[old_kafka.version]:
        topic = f"message-sets-{magic}"
        address = old_leader(old_kafka, topic)
        kind = CREATE_TIME if magic else NO_TIMESTAMP
        meant = []
        for codec in OLD_CODECS:
            produce(
                address,
                topic,
                magic,
                write(Batch(magic, codec=codec, timestamp_type=kind), some(magic, codec)),
            )
            meant += some(magic, codec)
        found = kept(address, topic, FETCH[magic])
        assert {batch.magic for batch, _ in found} == {magic}
        converted = magic != OLD_MAGICS[old_kafka.version][-1]  # to an older format, without compression
        assert {batch.codec for batch, _ in found} == ({"none"} if converted else set(OLD_CODECS))
        assert {batch.timestamp_type for batch, _ in found} == {kind}
        read = [record for _, inside in found for record in inside]
        assert [record.offset for record in read] == list(range(len(OLD_CODECS) * COUNT))
        assert contents(read) == contents(meant)
        assert [record.timestamp for record in read] == [record.timestamp for record in meant]


def test_a_batch_that_an_old_broker_cut_is_told_from_the_whole_ones(old_kafka: OldCluster) -> None:
    topic, magic = "cut", OLD_MAGICS[old_kafka.version][-1]  # a broker that converts leaves out what it cut
    address = old_leader(old_kafka, topic)
    produce(address, topic, magic, write(Batch(magic), [Record(value=b"v" * 100)] * 3))
    with Conversation(address) as conversation:
        whole = fetch(conversation, FETCH[magic], topic, 0, 1 << 20)["records"]
        assert valid_bytes(whole) == len(whole)
        cut = fetch(conversation, FETCH[magic], topic, 0, len(whole) - 10)["records"]
    assert len(cut) == len(whole) - 10
    assert valid_bytes(cut) == len(whole) // 3 * 2
    assert len(list(batches(cut))) == 2


@pytest.mark.parametrize("old_kafka", ["0.10.1.1"], indirect=True, scope="session")
def test_the_time_of_appending_is_that_of_every_record(old_kafka: OldCluster) -> None:
    topic = "appended"
    config = [{"name": "message.timestamp.type", "value": LOG_APPEND_TIME}]
    made = {"name": topic, "num_partitions": 1, "replication_factor": 1, "configs": config}
    for port in old_kafka.ports.values():  # one of them is the controller
        ask(("127.0.0.1", port), "CreateTopics", 0, {"topics": [made], "timeout_ms": 10_000})
    address = old_leader(old_kafka, topic)
    for codec in OLD_CODECS:
        produce(address, topic, 1, write(Batch(1, codec=codec), some(1, codec)))
    for batch, inside in kept(address, topic, FETCH[1]):
        assert batch.timestamp_type == LOG_APPEND_TIME
        assert {record.timestamp for record in inside} == {batch.max_timestamp}
        assert batch.max_timestamp >= NOW_MS


def kraft_leader(kafka: Cluster, topic: str) -> Address:
    return wait_for(lambda: leader(kafka.address(1), topic), f"a leader of {topic}")


def test_batches_written_here_are_kept_and_answered_with(kafka: Cluster) -> None:
    topic = "batches-by-hand"
    topics.create(kafka.bootstrap(), topic, [[2]])
    address, meant = kraft_leader(kafka, topic), []
    for codec in CODECS[:5]:
        produce(address, topic, 2, write(Batch(codec=codec), some(2, codec)))
        meant += some(2, codec)
    found = kept(address, topic, FETCH[2])
    assert [batch.codec for batch, _ in found] == list(CODECS[:5])
    assert [batch.record_count for batch, _ in found] == [COUNT] * 5
    read = [record for _, inside in found for record in inside]
    assert [record.offset for record in read] == list(range(5 * COUNT))
    assert contents(read) == contents(meant)
    assert [record.timestamp for record in read] == [record.timestamp for record in meant]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_clients_produce_with_each_codec_is_read(client: str, kafka: Cluster) -> None:
    topic = f"batches-of-{client}"
    topics.create(kafka.bootstrap(), topic, [[2]])
    actions: list[dict[str, Any]] = [
        {
            "do": "produce",
            "topic": topic,
            "seed": codec,
            "count": COUNT,
            "compression": codec,
            "idempotent": True,
        }
        for codec in CLIENTS[client]
    ]
    run(client, kafka, actions)
    found = kept(kraft_leader(kafka, topic), topic, FETCH[2])
    assert {batch.codec for batch, _ in found} == set(CLIENTS[client])
    assert all(batch.producer_id >= 0 and batch.base_sequence >= 0 for batch, _ in found)
    meant = [sent.record(codec, index) for codec in CLIENTS[client] for index in range(COUNT)]
    read = [record for _, inside in found for record in inside]
    assert contents(read) == [(key, value, tuple(headers)) for key, value, headers in meant]


def test_the_ends_of_real_transactions_are_control_records(kafka: Cluster) -> None:
    topic = "batches-in-transactions"
    topics.create(kafka.bootstrap(), topic, [[2]])
    action = {"do": "produce", "topic": topic, "count": 5, "transactional_id": topic, "aborted": 3}
    run("librdkafka", kafka, [action])
    found = kept(kraft_leader(kafka, topic), topic, FETCH[2])
    assert all(batch.is_transactional for batch, _ in found)
    ends = []
    for batch, inside in found:
        if batch.is_control:
            decoded_key, value = control_record(inside[0].key, inside[0].value)
            assert value is not None
            ends.append(
                (decoded_key.values["type"], value.values["coordinator_epoch"] >= 0, batch.producer_id)
            )
    producer_id = found[0][0].producer_id
    assert ends == [(0, True, producer_id), (1, True, producer_id)]  # ABORT, COMMIT
    read = [record for batch, inside in found if not batch.is_control for record in inside]
    meant = [sent.record("aborted", index) for index in range(3)] + [
        sent.record("seed", index) for index in range(5)
    ]
    assert contents(read) == [(key, value, tuple(headers)) for key, value, headers in meant]


def run(client: str, kafka: Cluster, actions: list[dict[str, Any]]) -> None:
    command = programs.command(client, kafka.bootstrap(), *actions)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [line["acknowledged"] for line in programs.results(done.stdout)] == [a["count"] for a in actions]
