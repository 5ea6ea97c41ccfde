"""A consumer of a topic whose name has a typing error: it goes on asking whether the topic is there."""

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour._producing import paced

CLIENT_ID = "unknown-topics"
EXPECTED = {"unknown_topics"}
TOPIC = f"{CLIENT_ID}-ordres"


def run(bootstrap: str, seconds: float) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "client.id": CLIENT_ID, "group.id": CLIENT_ID})
    consumer.subscribe([TOPIC])
    for _ in paced(seconds, 0.5):
        consumer.list_topics(TOPIC, timeout=10)
        consumer.poll(0)
    consumer.close()
