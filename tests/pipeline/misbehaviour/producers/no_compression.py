"""No compression: `compression.type` left at its default, `none`, for text that shrinks to a tenth."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "no-compression"
EXPECTED = {"no_compression"}


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    settings = healthy(bootstrap, CLIENT_ID)
    del settings["compression.type"]
    producer = Producer(settings)
    for tick in paced(seconds, 0.2, producer):
        for index in range(80):
            producer.produce(CLIENT_ID, order(tick * 80 + index, notes=150))
