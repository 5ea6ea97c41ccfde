"""Kafka's promises about topics, through klamm: Metadata of all, some and none, creating, refusing."""

import pytest

from tests.brokers.kraft import Cluster
from tests.e2e.contracts.contracts import Address, Values, ask, batch, create, fetch, produce, produced
from tests.e2e.klamm_process import Klamm
from tests.e2e.paths import Paths

pytestmark = pytest.mark.brokers

TOPIC, NEVER = "contracts-topics", "contracts-never-made"
UNKNOWN_TOPIC, INVALID_TOPIC = 3, 17


@pytest.fixture(scope="module")
def leader(kafka: Cluster, paths: Paths) -> Address:
    """Broker 1 through klamm, which leads this topic."""
    leader = paths.through["broker", 1]
    create(kafka.bootstrap(), leader, TOPIC, (1, 2, 3))
    return leader


def names(answer: Values) -> set[str]:
    return {topic["name"] for topic in answer["topics"]}


@pytest.mark.parametrize(("version", "every"), [(0, []), (1, None), (9, None), (12, None)])
def test_metadata_of_all_topics_is_asked_with_an_empty_array_in_version_0_and_with_null_later(
    version: int, every: list[Values] | None, leader: Address
) -> None:
    assert names(ask(leader, "Metadata", version, {"topics": every})) >= {TOPIC, "__consumer_offsets"}


@pytest.mark.parametrize("version", [1, 9, 12])
def test_metadata_of_no_topic_tells_the_brokers_only(version: int, leader: Address, paths: Paths) -> None:
    answer = ask(leader, "Metadata", version, {"topics": []})
    nodes = {("broker", node["node_id"]): (node["host"], node["port"]) for node in answer["brokers"]}
    assert nodes == {end: address for end, address in paths.through.items() if end[0] == "broker"}
    assert answer["topics"] == []


def test_metadata_tells_leader_replicas_and_isr_by_ids_of_brokers_that_it_lists(leader: Address) -> None:
    answer = ask(leader, "Metadata", 12, {"topics": [{"name": TOPIC}]})
    ids = {node["node_id"] for node in answer["brokers"]}
    (partition,) = answer["topics"][0]["partitions"]
    assert (partition["leader_id"], partition["replica_nodes"]) == (1, [1, 2, 3])
    assert set(partition["replica_nodes"]) == set(partition["isr_nodes"]) == ids
    assert (partition["leader_epoch"], partition["offline_replicas"]) == (0, [])
    assert answer["cluster_id"]


@pytest.mark.parametrize("version", [1, 4, 12])
def test_a_topic_that_is_not_there_is_an_error_of_that_topic_only(version: int, leader: Address) -> None:
    asked = {"topics": [{"name": NEVER}, {"name": TOPIC}, {"name": "no/name"}]}
    answer = ask(leader, "Metadata", version, asked)
    errors = {topic["name"]: topic["error_code"] for topic in answer["topics"]}
    assert errors == {NEVER: UNKNOWN_TOPIC, TOPIC: 0, "no/name": INVALID_TOPIC}
    assert NEVER not in names(ask(leader, "Metadata", 12, {"topics": None}))


def test_records_for_a_topic_that_is_not_there_are_refused(leader: Address) -> None:
    assert produced(ask(leader, "Produce", 9, produce(NEVER, batch([b"x"]))))["error_code"] == UNKNOWN_TOPIC
    answer = ask(leader, "Fetch", 12, fetch(NEVER, 0))
    assert answer["responses"][0]["partitions"][0]["error_code"] == UNKNOWN_TOPIC


WRONG = [
    ({"name": TOPIC}, 36),
    ({"name": "contracts-wrong", "num_partitions": 0}, 37),
    ({"name": "contracts-wrong", "replication_factor": 9}, 38),
    (
        {
            "name": "contracts-wrong",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [{"partition_index": 0, "broker_ids": [99]}],
        },
        39,
    ),
    ({"name": "contracts-wrong", "configs": [{"name": "retention.ms", "value": "soon"}]}, 40),
    ({"name": "contracts-wrong", "assignments": [{"partition_index": 0, "broker_ids": [1]}]}, 42),
    ({"name": "no/name"}, INVALID_TOPIC),
]


@pytest.mark.parametrize(("wrong", "error"), WRONG, ids=[str(error) for _, error in WRONG])
def test_a_topic_that_cannot_be_is_refused_with_its_reason(
    wrong: Values, error: int, leader: Address
) -> None:
    topic = {"num_partitions": 1, "replication_factor": 1, **wrong}
    (answer,) = ask(leader, "CreateTopics", 5, {"topics": [topic], "timeout_ms": 5000})["topics"]
    assert answer["error_code"] == error


def test_topics_are_created_and_deleted(klamm: Klamm) -> None:
    name = "contracts-short-lived"
    topic = {"name": name, "num_partitions": 2, "replication_factor": 1}
    (made,) = ask(klamm.address, "CreateTopics", 2, {"topics": [topic], "timeout_ms": 5000})["topics"]
    assert made["error_code"] == 0
    gone = {"topic_names": [name], "timeout_ms": 5000}
    assert ask(klamm.address, "DeleteTopics", 1, gone)["responses"][0]["error_code"] == 0
    assert ask(klamm.address, "DeleteTopics", 1, gone)["responses"][0]["error_code"] == UNKNOWN_TOPIC
