"""A consumer that ends by an exception at a record that it cannot read, and is started again."""

import time

from confluent_kafka import Consumer, TopicPartition

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consume, consumer_settings, fill, goes_on, until

CLIENT_ID = "poison-records"
EXPECTED = {"poison_records", "connection_churn", "rebalance_storm"}
BEGIN = 100  # it has committed so far
PATIENCE_S = 30  # until there are records
RESTART_S = 1.0  # the supervisor's
ENOUGH = 6  # starts


def work(bootstrap: str) -> None:
    """It fails at the first record."""
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID, enable_auto_commit=False))
    consumer.subscribe([CLIENT_ID])
    end = until(PATIENCE_S)
    while time.monotonic() < end and not consumer.consume(50, 0.5):
        pass
    consumer.close()


def begin(bootstrap: str) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID))
    consumer.commit(offsets=[TopicPartition(CLIENT_ID, 0, BEGIN)], asynchronous=False)
    consumer.close()


def cured(bootstrap: str, seconds: float) -> None:
    """It puts the record aside, and goes on."""
    begin(bootstrap)
    consumer, end = Consumer(consumer_settings(bootstrap, CLIENT_ID)), until(seconds)
    consumer.subscribe([CLIENT_ID])
    consume(consumer, end)


def run(bootstrap: str, seconds: float) -> None:
    begin(bootstrap)
    end, starts = until(seconds), 0
    while goes_on(end, starts, ENOUGH):
        work(bootstrap)
        starts += 1
        time.sleep(RESTART_S)
