"""No compression: `compression.type` left at its default, `none`, for text that shrinks to a tenth."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "no-compression"
EXPECTED = {"no_compression"}


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, "none")


def cured(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, "lz4")


def _produce(bootstrap: str, seconds: float, compression: str) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | {"compression.type": compression})
    for tick in paced(seconds, 0.2, producer):
        for index in range(80):
            producer.produce(CLIENT_ID, order(tick * 80 + index, notes=150))
