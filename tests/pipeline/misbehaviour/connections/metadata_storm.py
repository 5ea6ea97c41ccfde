"""A producer that makes sure that its topic is still there before each piece of work, with `list_topics`."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "metadata-storm"
EXPECTED = {"metadata_storm"}
RECORDS = 50  # of a piece of work


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    for index in paced(seconds, 0.2):
        if CLIENT_ID in producer.list_topics(timeout=10).topics:
            _send(producer, index)
    producer.flush(30)


def cured(bootstrap: str, seconds: float) -> None:
    """The library knows whether the topic is there."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    for index in paced(seconds, 0.2):
        _send(producer, index)
    producer.flush(30)


def _send(producer: Producer, index: int) -> None:
    for number in range(RECORDS):
        producer.produce(CLIENT_ID, order(index * RECORDS + number))
    producer.poll(0)
