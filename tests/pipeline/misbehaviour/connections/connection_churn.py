"""A web handler that makes a producer for each request that it serves, and throws it away."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "connection-churn"
EXPECTED = {"connection_churn"}
RECORDS = 50  # of a web request


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    for index in paced(seconds, 0.5):
        producer = Producer(healthy(bootstrap, CLIENT_ID) | {"linger.ms": 20})
        _serve(producer, index)
        del producer


def cured(bootstrap: str, seconds: float) -> None:
    """One producer for all requests."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | {"linger.ms": 20})
    for index in paced(seconds, 0.5):
        _serve(producer, index)


def _serve(producer: Producer, index: int) -> None:
    for number in range(RECORDS):
        producer.produce(CLIENT_ID, order(index * RECORDS + number))
    producer.flush(30)
