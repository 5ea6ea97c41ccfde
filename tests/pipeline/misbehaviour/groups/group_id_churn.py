"""A job that reads what is new, each time with a `group.id` that has a UUID in it."""

import time
import uuid

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import PATIENCE_S, consume, consumer_settings, fill, goes_on, until

CLIENT_ID = "group-id-churn"
EXPECTED = {"group_id_churn", "connection_churn", "offset_resets"}
PAUSE_S = 0.5
ENOUGH = 12  # jobs


def run(bootstrap: str, seconds: float) -> None:
    begin(bootstrap)
    end, jobs = until(seconds), 0
    while goes_on(end, jobs, ENOUGH):
        consumer = subscribed(bootstrap, f"job-{uuid.uuid4()}")
        read(consumer)
        consumer.close()
        jobs += 1
        time.sleep(PAUSE_S)


def cured(bootstrap: str, seconds: float) -> None:
    """One consumer, whose group is that of the job."""
    begin(bootstrap)
    consumer, end = subscribed(bootstrap, CLIENT_ID), until(seconds)
    consume(consumer, end)


def begin(bootstrap: str) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)


def subscribed(bootstrap: str, group: str) -> Consumer:
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID) | {"group.id": group})
    consumer.subscribe([CLIENT_ID])
    return consumer


def read(consumer: Consumer) -> None:
    """What there is."""
    end = until(PATIENCE_S)
    while time.monotonic() < end and not consumer.consume(200, 0.5):
        pass
