"""A producer that is to fail fast, by a `request.timeout.ms` of two seconds."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "short-request-timeouts"
EXPECTED = {"short_request_timeouts"}
RECORDS = 50  # in each batch, at least


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, {"request.timeout.ms": 2000})


def cured(bootstrap: str, seconds: float) -> None:
    """The time that a record may take is bounded, and not that of a request."""
    _produce(bootstrap, seconds, {"message.timeout.ms": 10_000})


def _produce(bootstrap: str, seconds: float, own: dict[str, int]) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | own)
    for _ in paced(seconds, 0.5, producer):
        for number in range(RECORDS):
            producer.produce(CLIENT_ID, order(number))
