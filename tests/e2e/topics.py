"""Topics made on the brokers themselves, with the replicas a test wants."""

import subprocess
import time
from collections.abc import Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.programs import command


def create(bootstrap: str, topic: str, replicas: Sequence[Sequence[int]], **config: str) -> None:
    """Create `topic` with these replicas, the first of each leads; return when they all do."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(
        topic, len(replicas), replica_assignment=[list(nodes) for nodes in replicas], config=config
    )
    admin.create_topics([new])[topic].result(30)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = admin.list_topics(topic, timeout=10).topics[topic]
        if len(found.partitions) == len(replicas) and all(p.leader >= 0 for p in found.partitions.values()):
            return
        time.sleep(0.05)
    raise TimeoutError(f"topic {topic} has partitions without a leader")


def spread(partitions: int = 3) -> list[list[int]]:
    """Replica lists over brokers 1, 2 and 3, leaders in turn."""
    return [[1 + (partition + step) % 3 for step in range(3)] for partition in range(partitions)]


def move(bootstrap: str, topic: str, partition: int, nodes: Sequence[int]) -> None:
    """Move a partition to `nodes`; return when the first of them leads it and all are in sync."""
    action = {"do": "move", "topic": topic, "partition": partition, "nodes": ",".join(map(str, nodes))}
    subprocess.run(command("kafka-python", bootstrap, action), check=True, capture_output=True, timeout=60)
    watcher = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = watcher.list_topics(topic, timeout=10).topics[topic].partitions[partition]
        if found.leader == nodes[0] and sorted(found.isrs) == sorted(found.replicas) == sorted(nodes):
            return
        time.sleep(0.1)
    raise TimeoutError(f"{topic}-{partition} did not move to {nodes}: {found.replicas} led by {found.leader}")


def assigned(bootstrap: str, group: str) -> list[int]:
    """How many partitions each member of a group has now."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    try:
        found = admin.describe_consumer_groups([group])[group].result(10)
    except KafkaException:
        return []
    return [len(member.assignment.topic_partitions) for member in found.members]
