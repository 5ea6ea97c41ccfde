"""Commits each record, and waits for it: `consumer.commit(message, asynchronous=False)` in the loop."""

import time

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consumer_settings, fill, until

CLIENT_ID = "commit-per-record"
EXPECTED = {"commit_per_record"}
PER_SECOND = 40
PATIENCE_S = 30  # for the first record


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=int(seconds * PER_SECOND))
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID, enable_auto_commit=False))
    consumer.subscribe([CLIENT_ID])
    first = consumer.poll(PATIENCE_S)
    end = until(seconds)
    while first is not None and time.monotonic() < end:
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            time.sleep(1 / PER_SECOND)
            consumer.commit(message, asynchronous=False)
    consumer.close()
