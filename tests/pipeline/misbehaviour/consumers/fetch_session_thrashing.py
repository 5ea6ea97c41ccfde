"""A consumer for each read: it opens a fetch session, asks once or twice, and goes, so that the brokers'
cache of sessions holds nothing that is asked for again.
"""

import time

from kafka import KafkaConsumer, TopicPartition

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import PATIENCE_S, fill, goes_on, until

CLIENT_ID = "fetch-session-thrashing"
EXPECTED = {"fetch_session_thrashing", "connection_churn"}
PARTITION = TopicPartition(CLIENT_ID, 0)
PAUSE_S = 0.25
ENOUGH = 12  # reads


def reader(bootstrap: str) -> KafkaConsumer:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, client_id=CLIENT_ID, enable_auto_commit=False)
    consumer.assign([PARTITION])
    return consumer


def read(consumer: KafkaConsumer) -> None:
    """The newest records of the topic."""
    consumer.seek(PARTITION, 150)
    end = until(PATIENCE_S)
    while time.monotonic() < end and not consumer.poll(timeout_ms=1000):
        pass


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end, reads = until(seconds), 0
    while goes_on(end, reads, ENOUGH):
        consumer = reader(bootstrap)
        read(consumer)
        consumer.close()
        reads += 1
        time.sleep(PAUSE_S)


def cured(bootstrap: str, seconds: float) -> None:
    """The consumer stays."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end, consumer = until(seconds), reader(bootstrap)
    while time.monotonic() < end:
        read(consumer)
        time.sleep(PAUSE_S)
    consumer.close()
