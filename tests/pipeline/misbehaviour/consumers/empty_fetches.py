"""fetch.wait.max.ms=10 (Java: fetch.max.wait.ms) "for low latency": on a quiet topic the broker is asked
again and again for nothing.
"""

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consume, consumer_settings, fill, until

CLIENT_ID = "empty-fetches"
EXPECTED = {"empty_fetches"}


def run(bootstrap: str, seconds: float) -> None:
    _consume(bootstrap, seconds, wait_ms=10)


def cured(bootstrap: str, seconds: float) -> None:
    _consume(bootstrap, seconds, wait_ms=500)


def _consume(bootstrap: str, seconds: float, wait_ms: int) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end = until(seconds)
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID, fetch_wait_max_ms=wait_ms))
    consumer.subscribe([CLIENT_ID])
    consume(consumer, end)
