"""Sessions of real clients in front of a real cluster, captured; then the capture is the broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.brokers.kraft import Cluster
from tests.brokers.namespace import Namespace
from tests.brokers.processes import Process, wait_for
from tests.clients import programs, records
from tests.e2e import topics
from tests.e2e.klamm_process import COMMAND, klamm_in_front_of

pytestmark = pytest.mark.brokers

TOPIC, COUNT, ABORTED = "served", 200, 30
CONSUME = {"do": "consume", "topic": TOPIC, "count": 2 * COUNT, "isolation": "read_committed"}
SESSION: list[dict[str, Any]] = [
    {"do": "produce", "topic": TOPIC, "seed": "plain", "count": COUNT, "idempotent": True},
    {
        "do": "produce",
        "topic": TOPIC,
        "seed": "transactional",
        "count": COUNT,
        "transactional_id": "served",
        "aborted": ABORTED,
    },
    {**CONSUME, "group": "served"},
    {**CONSUME, "group": "served-new", "protocol": "consumer"},
]
SENT = sorted(
    mark for seed in ("plain", "transactional") for mark in records.expected(TOPIC, seed, range(COUNT))
)


@pytest.fixture(scope="module")
def capture(kafka: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exchanges of a producer and two consumers of librdkafka."""
    folder = tmp_path_factory.mktemp("served")
    topics.create(kafka.bootstrap(), TOPIC, topics.spread())
    kept = "--capture", str(folder / "capture"), "--capture-records", "keep"
    with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", folder / "klamm.log", *kept) as klamm:
        process = Process(programs.command("librdkafka", klamm.bootstrap, *SESSION), folder / "client.log")
        assert process.child.wait(timeout=120) == 0, process.tail()
    return folder / "capture"


@contextmanager
def served(capture: Path, host: str, log: Path, *options: str) -> Iterator[str]:
    """`klamm replay --serve` listening on `host`; its bootstrap. It answers everything it is asked."""
    listen = f"{host}:0"
    process = Process([str(COMMAND), "replay", "--serve", str(capture), "--listen", listen, *options], log)

    def bootstrap() -> str | None:
        found = [line for line in log.read_text().splitlines() if line.startswith("bootstrap.servers=")]
        return found[0].partition("=")[2] if found else None

    try:
        yield wait_for(bootstrap, "klamm replay", [process])
    finally:
        exit_code = process.stop()
    text = log.read_text()
    assert exit_code == 0, text
    assert "requests answered, 0 not" in text


READERS = [
    ("librdkafka", "classic"),
    ("librdkafka", "consumer"),
    ("kafka-python", "classic"),
    ("java", "consumer"),
]


@pytest.mark.parametrize(("client", "protocol"), READERS)
def test_a_consumer_in_a_group_reads_all_records_where_only_klamm_is_to_be_reached(
    client: str, protocol: str, capture: Path, inside: Namespace, log: Path
) -> None:
    action = {**CONSUME, "group": f"another-{client}", "protocol": protocol, "list": True}
    with served(capture, inside.host, log, "--strict") as bootstrap:
        output = inside.run(*programs.command(client, bootstrap, action))
    (result,) = programs.results(output)
    assert sorted(result["fingerprints"]) == SENT


def test_a_group_has_read_what_it_has_committed(capture: Path, inside: Namespace, log: Path) -> None:
    once = {**CONSUME, "group": "served"}
    again = {**once, "count": 1, "timeout_s": 3}
    with served(capture, inside.host, log) as bootstrap:
        output = inside.run(*programs.command("librdkafka", bootstrap, once, again))
    assert [result["count"] for result in programs.results(output)] == [2 * COUNT, 0]


def test_a_consumer_without_a_group_reads_to_the_end_in_fetches_of_any_size(capture: Path, log: Path) -> None:
    async def read(bootstrap: str) -> list[str]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
            max_partition_fetch_bytes=500,
            fetch_max_bytes=900,
        )
        async with consumer:
            partitions = [TopicPartition(TOPIC, index) for index in range(3)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(partitions)
            found: list[str] = []
            while [one for one in partitions if await consumer.position(one) < ends[one]]:
                for batch in (await consumer.getmany(timeout_ms=200)).values():
                    found += [records.fingerprint(r.topic, r.key, r.value, r.headers) for r in batch]
            return found

    with served(capture, "127.0.0.1", log, "--strict") as bootstrap:
        assert sorted(asyncio.run(asyncio.wait_for(read(bootstrap), 60))) == SENT


def test_the_recorded_session_runs_again(capture: Path, inside: Namespace, log: Path) -> None:
    with served(capture, inside.host, log) as bootstrap:
        results = programs.results(inside.run(*programs.command("librdkafka", bootstrap, *SESSION)))
    done = [result.get("acknowledged", result.get("count")) for result in results]
    assert done == [COUNT, COUNT, 2 * COUNT, 2 * COUNT]
