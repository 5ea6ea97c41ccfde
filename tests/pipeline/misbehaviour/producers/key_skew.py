"""Key skew: each record has its customer as key, but what has no customer has "unknown", and that is most of
it.

Small records without compression, so that a capture with hashed records has their keys.
"""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, paced

CLIENT_ID = "key-skew"
EXPECTED = {"key_skew", "hot_partitions"}  # where one key has most records, so has its partition


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, unknown="unknown")


def cured(bootstrap: str, seconds: float) -> None:
    """Records without a customer have no key."""
    _produce(bootstrap, seconds, unknown=None)


def _produce(bootstrap: str, seconds: float, unknown: str | None) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=6)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | {"compression.type": "none"})
    for tick in paced(seconds, 0.2, producer):
        for index in range(30):
            customer = unknown if index < 24 else f"customer-{(tick * 30 + index) % 500}"
            producer.produce(CLIENT_ID, b"visit", key=customer)
