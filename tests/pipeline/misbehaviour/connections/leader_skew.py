"""A topic whose partitions were all assigned by hand, with the same broker as the first replica of each."""

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy, order, paced

CLIENT_ID = "leader-skew"
EXPECTED = {"leader_skew"}
ON_ONE = [[1, 2, 3]] * 6
SPREAD = [[1, 2, 3], [2, 3, 1], [3, 1, 2]] * 2


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, ON_ONE)


def cured(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, SPREAD)


def _produce(bootstrap: str, seconds: float, assigned: list[list[int]]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "client.id": CLIENT_ID})
    topic = NewTopic(CLIENT_ID, num_partitions=len(assigned), replica_assignment=assigned)
    admin.create_topics([topic])[CLIENT_ID].result(TIMEOUT_S)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | {"topic.metadata.refresh.interval.ms": 5000})
    for index in paced(seconds, 1.0, producer):
        for number in range(50):
            producer.produce(CLIENT_ID, order(index * 50 + number))
