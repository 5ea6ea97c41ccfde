"""Reads from where it should not. One client never commits, and assigns itself its partition at every turn of
its loop: there is no committed offset, so it begins anew each time. Another keeps its offsets in a database
that is older than the topic: they are out of range, and auto.offset.reset decides.
"""

import time

from confluent_kafka import OFFSET_STORED, Consumer, TopicPartition

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consumer_settings, fill, until

CLIENT_ID = "offset-resets"
EXPECTED = {"offset_resets"}
STALE = f"{CLIENT_ID}-stale"
OFFSETS = {CLIENT_ID: OFFSET_STORED, STALE: 5_000_000}
TURN_S = 2.0


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end = until(seconds)
    readers = {
        offset: Consumer(consumer_settings(bootstrap, client_id, enable_auto_commit=False))
        for client_id, offset in OFFSETS.items()
    }
    while time.monotonic() < end:
        for offset, consumer in readers.items():
            consumer.assign([TopicPartition(CLIENT_ID, 0, offset)])
            consumer.consume(50, TURN_S / 2)
    for consumer in readers.values():
        consumer.close()
