"""Commits each record, and waits for it: `consumer.commit(message, asynchronous=False)` in the loop."""

import time

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import PATIENCE_S, consumer_settings, fill, goes_on, until

CLIENT_ID = "commit-per-record"
EXPECTED = {"commit_per_record"}
PER_SECOND = 40
ENOUGH = 60  # records


def run(bootstrap: str, seconds: float) -> None:
    _consume(bootstrap, seconds, each=1)


def cured(bootstrap: str, seconds: float) -> None:
    """Once for 200 records, in place of once for each."""
    _consume(bootstrap, seconds, each=200)


def _consume(bootstrap: str, seconds: float, each: int) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=int(seconds * PER_SECOND))
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID, enable_auto_commit=False))
    consumer.subscribe([CLIENT_ID])
    first = consumer.poll(PATIENCE_S)
    end, done = until(seconds), 0
    while first is not None and goes_on(end, done, ENOUGH):
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            time.sleep(1 / PER_SECOND)
            done += 1
            if done % each == 0:
                consumer.commit(message=message, asynchronous=False)
    consumer.close()
