"""The healthy load: four client libraries at work as they should be, on topics of their own, and restarts of
brokers as an operator makes them. healthy_clients/ says what each does.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient

from tests.brokers.jars import compiled, java
from tests.brokers.kraft import VERSION, Cluster
from tests.brokers.processes import Process, wait_for
from tests.e2e.conversation import coordinator
from tests.pipeline.healthy_clients.work import PARTITIONS, SHIPMENTS, VISITS

CLIENT_ID = "healthy-"  # prefix of all client ids
FOLDER = Path(__file__).resolve().parent / "healthy_clients"
SHUTDOWN_S, PREFERRED = 30.0, 0


def _python(module: str) -> Callable[[str, float], list[str]]:
    package = f"tests.pipeline.healthy_clients.{module}"
    return lambda bootstrap, seconds: [sys.executable, "-m", package, bootstrap, str(seconds)]


def _java(bootstrap: str, seconds: float) -> list[str]:
    words = ("Healthy", bootstrap, str(seconds), SHIPMENTS, VISITS)
    classes = compiled(VERSION, FOLDER / "Healthy.java")
    return java(VERSION, *words, options=("-Dlog4j2.level=ERROR",), heap_mb=192, classes=classes)


COMMANDS: dict[str, Callable[[str, float], list[str]]] = {
    "healthy-librdkafka": _python("librdkafka"),
    "healthy-aiokafka": _python("aiokafka"),
    "healthy-kafka-python": _python("kafka_python"),
    "healthy-java": _java,
}


def _admin(cluster: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap(), "log_level": 0})


def settle(cluster: Cluster) -> None:
    """Return when there are coordinators of groups and of transactions: they are made when first asked for,
    and clients of a cluster in use do not see that.
    """
    first = cluster.address(1)
    wait_for(lambda: coordinator(first, 0, "any-group"), "the group coordinators")
    wait_for(lambda: coordinator(first, 1, "any-transaction"), "the transaction coordinators")
    wait_for(lambda: in_sync(cluster), "the topics of coordinators in sync")


def create_topics(cluster: Cluster) -> None:
    """On the brokers themselves; return when every broker knows of them."""
    admin = _admin(cluster)
    wanted = [NewTopic(name, count, replication_factor=3) for name, count in PARTITIONS.items()]
    for future in admin.create_topics(wanted, operation_timeout=30).values():
        future.result(30)


def in_sync(cluster: Cluster) -> bool:
    """Whether every partition of every topic has all its replicas in sync."""
    try:
        found = _admin(cluster).list_topics(timeout=10)
    except KafkaException:
        return False
    partitions = [each for topic in found.topics.values() for each in topic.partitions.values()]
    return len(found.brokers) == len(cluster.brokers) and all(
        len(each.isrs) == len(each.replicas) and each.leader >= 0 for each in partitions
    )


def roll(cluster: Cluster, pause_s: float = 0.0) -> None:
    """Restart the brokers one by one, each when all is in sync again and its partitions are led by it.

    To be called in the thread that outlives the cluster: brokers die with the thread that started them.
    """
    for broker in cluster.brokers.values():
        broker.process.stop(SHUTDOWN_S)
        broker.process = Process(broker.process.command, broker.process.log)
        wait_for(
            lambda: in_sync(cluster), f"broker {broker.node_id} in sync", [broker.process], timeout_s=120
        )
        elect_preferred_leaders(cluster)
        time.sleep(pause_s)


def elect_preferred_leaders(cluster: Cluster) -> None:
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap())
    admin.elect_leaders(PREFERRED, raise_errors=False)
    admin.close()


def reports_of(log: Path) -> dict[str, dict[str, Any]]:
    """The reports of the clients of one log, by client id."""
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith('{"client_id"')]
    return {line["client_id"]: line for line in lines}
