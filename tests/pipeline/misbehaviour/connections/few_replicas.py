"""A topic made for a trial, with one replica, that went into production."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "few-replicas"
EXPECTED = {"few_replicas"}


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, replicas=1, config={"min.insync.replicas": "1"})
    _produce(bootstrap, seconds)


def cured(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, replicas=3, config={"min.insync.replicas": "2"})
    _produce(bootstrap, seconds)


def _produce(bootstrap: str, seconds: float) -> None:
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    for index in paced(seconds, 1.0, producer):
        for number in range(50):
            producer.produce(CLIENT_ID, order(index * 50 + number))
