"""Traffic of real clients, captured in front of one cluster, leaves the same records in another."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.decoders.records import Batch, batches
from tests.brokers.kraft import Cluster, kraft_cluster
from tests.brokers.processes import wait_for
from tests.captures.rows import Talk, written
from tests.clients import programs
from tests.e2e import topics
from tests.e2e.conversation import Conversation, ask
from tests.e2e.klamm_process import COMMAND, klamm_in_front_of
from tests.e2e.paths import Address

pytestmark = pytest.mark.brokers

TOPIC = "replayed"
SMALL = {
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
RECORDS = {"idempotent": 40, "transactional": 30, "plain": 20}
PRODUCED: list[dict[str, Any]] = [
    {"seed": "idempotent", "idempotent": True, "compression": "lz4"},
    {"seed": "transactional", "transactional_id": "replay", "aborted": 10},
    {"seed": "plain", "acks": "1", "compression": "gzip"},
]
COUNT = sum(RECORDS.values())


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Fresh, with other node ids and fewer of them."""
    with kraft_cluster(tmp_path_factory.mktemp("kafka-other"), (11, 12), settings=SMALL) as cluster:
        yield cluster


def acted(client: str, bootstrap: str, *actions: dict[str, Any]) -> list[dict[str, Any]]:
    command = programs.command(client, bootstrap, *actions)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return programs.results(done.stdout)


def consumed(group: str, **also: Any) -> dict[str, Any]:
    return {
        "do": "consume",
        "topic": TOPIC,
        "group": group,
        "count": COUNT,
        "isolation": "read_committed",
        **also,
    }


def kept(cluster: Cluster, partition: int) -> list[Batch]:
    """All batches that a partition holds."""
    metadata = ask(cluster.address(next(iter(cluster.brokers))), "Metadata", 9, {"topics": [{"name": TOPIC}]})
    nodes = {node["node_id"]: (node["host"], node["port"]) for node in metadata["brokers"]}
    (leader,) = (
        nodes[one["leader_id"]]
        for one in metadata["topics"][0]["partitions"]
        if one["partition_index"] == partition
    )
    return _fetched(leader, partition)


def _fetched(leader: Address, partition: int) -> list[Batch]:
    asked = {"partition": partition, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    with Conversation(leader) as conversation:
        values = {"max_wait_ms": 500, "min_bytes": 1, "topics": [{"topic": TOPIC, "partitions": [asked]}]}
        (found,) = conversation.ask("Fetch", 12, values)["responses"][0]["partitions"]
    return list(batches(found["records"]))


def has_producer_id(address: Address) -> bool:
    answer = ask(address, "InitProducerId", 4, {"transactional_id": None, "transaction_timeout_ms": 1})
    return bool(answer["error_code"] == 0)


def contents(batch: Batch) -> tuple[Any, ...]:
    """The parts of a batch that are equal in both clusters."""
    return (
        batch.base_offset,
        batch.record_count,
        batch.codec,
        batch.is_transactional,
        batch.is_control,
        batch.size,
    )


def test_a_session_replayed_to_a_fresh_cluster_leaves_the_same_records_there(
    kafka: Cluster, other: Cluster, log: Path, tmp_path: Path
) -> None:
    for node in kafka.brokers:  # so that producers here have not the ids that they will have there
        for _ in range(3):
            wait_for(lambda node=node: has_producer_id(kafka.address(node)), "a producer id")
    folder = tmp_path / "capture"
    options = "--capture", str(folder), "--capture-records", "keep"
    with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, *options) as klamm:
        topics.create(klamm.bootstrap, TOPIC, topics.spread())
        produced = [
            {"do": "produce", "topic": TOPIC, "count": RECORDS[one["seed"]], **one} for one in PRODUCED
        ]
        groups = consumed("classic"), consumed("new", protocol="consumer")
        *_, classic, new = acted("librdkafka", klamm.bootstrap, *produced, *groups)
        (third,) = acted("aiokafka", klamm.bootstrap, consumed("third"))
    assert classic["digest"] == new["digest"] == third["digest"]

    command = [str(COMMAND), "replay", str(folder), "--to", other.bootstrap(), "--asap", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    report = json.loads(done.stdout)
    assert report["differences"] == []
    assert (done.returncode, report["lost"], report["left_out"]) == (0, 0, {})

    (there,) = acted("librdkafka", other.bootstrap(), consumed("afterwards"))
    assert (there["count"], there["digest"]) == (COUNT, classic["digest"])
    for partition in range(3):
        before, after = kept(kafka, partition), kept(other, partition)
        assert [contents(batch) for batch in before] == [contents(batch) for batch in after]
        assert all(batch.crc_ok for batch in after)
        producers = [{batch.producer_id for batch in those} - {-1} for those in (before, after)]
        assert producers[0] & producers[1] == set()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_klamm_authenticates_itself_over_tls(kafka: Cluster, tmp_path: Path, mechanism: str) -> None:
    asked = Talk().exchange(
        "Metadata", 9, {"topics": []}, {"brokers": [], "cluster_id": "x", "controller_id": 1}
    )
    capture = written(tmp_path / "capture.arrow", asked.rows)
    file = tmp_path / "client.properties"
    settings = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": 'LoginModule required username="alice" password="alice-secret";',
        "ssl.truststore.location": str(kafka.ca),
    }

    def replayed() -> subprocess.CompletedProcess[str]:
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        to = ["--to", kafka.bootstrap("SASL_SSL"), "--client-config", str(file)]
        command = [str(COMMAND), "replay", str(capture), *to]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    done = replayed()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 request of 1 connection sent, 1 answered\nno differences\n"
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace("alice-secret", "wrong")
    done = replayed()
    assert (done.returncode, done.stdout) == (2, "")
    assert "refuses alice" in done.stderr
    assert "wrong" not in done.stderr
