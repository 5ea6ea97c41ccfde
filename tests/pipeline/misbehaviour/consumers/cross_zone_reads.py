"""A consumer that says in which zone it is, of brokers without a RackAwareReplicaSelector."""

import os

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consume, consumer_settings, producer, until

CLIENT_ID = "cross-zone-reads"
EXPECTED = {"cross_zone_reads"}
ZONE = "zone-1"  # of broker 1
RECORDS, SIZE = (
    4000,
    1000,
)  # of bytes that no codec makes fewer; those behind them let the batch be compressed
REST = bytes(300)


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    sender = producer(bootstrap, CLIENT_ID)
    for number in range(RECORDS):
        sender.produce(CLIENT_ID, key=f"customer-{number}", value=os.urandom(SIZE) + REST)
    sender.flush(30)
    consumer, end = Consumer(consumer_settings(bootstrap, CLIENT_ID, client_rack=ZONE)), until(seconds)
    consumer.subscribe([CLIENT_ID])
    consume(consumer, end)
