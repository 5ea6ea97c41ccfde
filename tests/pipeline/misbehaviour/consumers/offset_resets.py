"""Reads from where it should not. One client never commits, and assigns itself its partition at every turn of
its loop: there is no committed offset, so it begins anew each time. Another keeps its offsets in a database
that is older than the topic: they are out of range, and auto.offset.reset decides. A third begins with a new
group id each time.
"""

import time
import uuid

from confluent_kafka import OFFSET_STORED, Consumer, TopicPartition

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consumer_settings, fill, goes_on, until

CLIENT_ID = "offset-resets"
EXPECTED = {"offset_resets", "connection_churn", "fetch_session_thrashing", "group_id_churn"}
STALE = f"{CLIENT_ID}-stale"
OFFSETS = {CLIENT_ID: OFFSET_STORED, STALE: 5_000_000}
NEW_GROUP = f"{CLIENT_ID}-new-group"
TURN_S = 2.0
ENOUGH = 6  # turns


def begin_with_a_new_group(bootstrap: str) -> None:
    settings = consumer_settings(bootstrap, NEW_GROUP) | {"group.id": f"{NEW_GROUP}-{uuid.uuid4()}"}
    consumer = Consumer(settings)
    consumer.subscribe([CLIENT_ID])
    end = until(TURN_S)
    while time.monotonic() < end and not consumer.consume(50, 0.5):
        pass
    consumer.close()


def cured(bootstrap: str, seconds: float) -> None:
    """It keeps its group, subscribes once, and commits."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    consumer, end = Consumer(consumer_settings(bootstrap, CLIENT_ID)), until(seconds)
    consumer.subscribe([CLIENT_ID])
    while time.monotonic() < end:
        consumer.consume(50, TURN_S / 2)
    consumer.close()


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end = until(seconds)
    readers = {
        offset: Consumer(consumer_settings(bootstrap, client_id, enable_auto_commit=False))
        for client_id, offset in OFFSETS.items()
    }
    turns = 0
    while goes_on(end, turns, ENOUGH):
        turns += 1
        for offset, consumer in readers.items():
            consumer.assign([TopicPartition(CLIENT_ID, 0, offset)])
            consumer.consume(50, TURN_S / 2)
        begin_with_a_new_group(bootstrap)
    for consumer in readers.values():
        consumer.close()
