"""A service that makes a producer for each of its threads, and keeps them all."""

from collections.abc import Sequence

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "many-connections"
EXPECTED = {"many_connections", "connection_churn"}
THREADS = 12


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    _produce([Producer(healthy(bootstrap, CLIENT_ID)) for _ in range(THREADS)], seconds)


def cured(bootstrap: str, seconds: float) -> None:
    """All threads share one producer."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    _produce([Producer(healthy(bootstrap, CLIENT_ID))] * THREADS, seconds)


def _produce(producers: Sequence[Producer], seconds: float) -> None:
    for index in paced(seconds, 2.0, *producers):
        for producer in producers:
            for number in range(50):
                producer.produce(CLIENT_ID, order(index * 50 + number))
