"""A producer of records without a key to a compacted topic, which the brokers refuse one by one."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "unexplained-errors"
EXPECTED = {"unexplained_errors"}


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, None)


def cured(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, "customer-1")


def _produce(bootstrap: str, seconds: float, key: str | None) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, config={"cleanup.policy": "compact"})
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    for tick in paced(seconds, 0.2, producer):
        for index in range(20):
            producer.produce(CLIENT_ID, order(tick * 20 + index), key=key)
