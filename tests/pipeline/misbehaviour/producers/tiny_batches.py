"""Tiny batches: `batch.num.messages=1`, `linger.ms=0` (in Java `batch.size=0`): each record travels alone."""

from typing import Any

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "tiny-batches"
EXPECTED = {"tiny_batches"}
IN_FLIGHT = 25  # a second's worth: librdkafka sends so many at once only without idempotence


def run(bootstrap: str, seconds: float) -> None:
    own = {"batch.num.messages": 1, "linger.ms": 0, "enable.idempotence": False, "acks": "all"}
    _produce(bootstrap, seconds, own)


def cured(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, {"linger.ms": 500})


def _produce(bootstrap: str, seconds: float, own: dict[str, Any]) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | own)
    for index in paced(seconds, 0.04):
        producer.produce(CLIENT_ID, order(index))
        while len(producer) >= IN_FLIGHT:
            producer.poll(0.1)
    producer.flush(30)
