"""Hot partitions: the key is the customer's country, and most customers live in one."""

import os
from collections.abc import Sequence

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, paced

CLIENT_ID = "hot-partitions"
EXPECTED = {"hot_partitions", "key_skew"}  # the latter where its keys are in the capture
COUNTRIES = ["us"] * 16 + ["de", "fr", "jp", "br"]


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, COUNTRIES)


def cured(bootstrap: str, seconds: float) -> None:
    """The key is the customer."""
    _produce(bootstrap, seconds, [f"customer-{number}" for number in range(500)])


def _produce(bootstrap: str, seconds: float, keys: Sequence[str]) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=6)
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    for tick in paced(seconds, 0.2, producer):
        for index in range(40):
            value = os.urandom(600) + bytes(300)
            producer.produce(CLIENT_ID, value, key=keys[(tick * 40 + index) % len(keys)])
