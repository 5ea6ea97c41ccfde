"""A producer that nobody gave a `client.id`: it goes by librdkafka's default, as do all the others."""

from typing import Any

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "rdkafka"
EXPECTED = {"client_ids"}
RECORDS = 50  # of a piece of work


def run(bootstrap: str, seconds: float) -> None:
    settings = healthy(bootstrap, CLIENT_ID)
    del settings["client.id"]
    _produce(bootstrap, seconds, settings)


def cured(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, healthy(bootstrap, f"{CLIENT_ID}-of-orders"))


def _produce(bootstrap: str, seconds: float, settings: dict[str, Any]) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producer = Producer(settings)
    for index in paced(seconds, 0.2):
        for number in range(RECORDS):
            producer.produce(CLIENT_ID, order(index * RECORDS + number))
        producer.poll(0)
    producer.flush(30)
