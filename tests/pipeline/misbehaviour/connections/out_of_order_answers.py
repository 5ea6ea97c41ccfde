"""A broker behind something that holds Fetch answers back until others have passed them. The client is well:
it writes and reads, and asks how far the partition has come while a Fetch waits on the same connection.
"""

import os
from contextlib import suppress

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.e2e import topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced
from tests.pipeline.misbehaviour._stock import consumer_settings

CLIENT_ID = "out-of-order-answers"
EXPECTED = {"few_replicas"}  # its topic is on one broker
LISTENER = "UNORDERED"
DIRECT = True
SUBJECTS = ("broker 1",)
ALONE = {"min.insync.replicas": "1"}
RECORDS = 50  # of a piece of work


def run(bootstrap: str, seconds: float) -> None:
    """On one broker: the others answer nothing that waits."""
    topics.create(os.environ["KLAMM_DIRECT"], CLIENT_ID, [[1]], **ALONE)
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID, enable_auto_commit=False))
    consumer.assign([TopicPartition(CLIENT_ID, 0, OFFSET_BEGINNING)])
    for index in paced(seconds, 0.5, producer):
        for number in range(RECORDS):
            producer.produce(CLIENT_ID, order(index * RECORDS + number))
        consumer.consume(RECORDS, 0.2)
        with suppress(KafkaException):  # the broker is being restarted
            consumer.get_watermark_offsets(TopicPartition(CLIENT_ID, 0), timeout=5)
    consumer.close()
