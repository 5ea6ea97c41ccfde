"""A consumer of a topic whose name has a typing error: it goes on asking whether the topic is there."""

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import paced

CLIENT_ID = "unknown-topics"
EXPECTED = {"unknown_topics"}
TOPIC = f"{CLIENT_ID}-ordres"


def run(bootstrap: str, seconds: float) -> None:
    _consume(bootstrap, seconds, TOPIC)


def cured(bootstrap: str, seconds: float) -> None:
    """The right name."""
    _topics.create(bootstrap, CLIENT_ID, f"{CLIENT_ID}-orders")
    _consume(bootstrap, seconds, f"{CLIENT_ID}-orders")


def _consume(bootstrap: str, seconds: float, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "client.id": CLIENT_ID, "group.id": CLIENT_ID})
    consumer.subscribe([topic])
    for _ in paced(seconds, 0.5):
        consumer.list_topics(topic, timeout=10)
        consumer.poll(0)
    consumer.close()
