"""Tiny batches: `batch.num.messages=1` (in Java `batch.size=0`): each record travels alone, at once."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "tiny-batches"
EXPECTED = {"tiny_batches"}


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | {"batch.num.messages": 1})
    for index in paced(seconds, 0.02):
        producer.produce(CLIENT_ID, order(index))
        producer.poll(0)
    producer.flush(30)
