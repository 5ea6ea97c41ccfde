"""Held back readers: a producer puts its records into a transaction and forgets to commit. Another producer
writes to the same topic, and a group with isolation.level=read_committed reads it.
"""

import time
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy, order, paced
from tests.pipeline.misbehaviour._stock import consumer_settings, until

CLIENT_ID = "held-back-readers"
EXPECTED = {"held_back_readers"}
FORGETFUL = f"{CLIENT_ID}-forgetful"
TIMEOUT_MS = 60_000
AT_LEAST_S = 14.0
RECORDS = 27


def run(bootstrap: str, seconds: float) -> None:
    _work(bootstrap, seconds, commits=False)


def cured(bootstrap: str, seconds: float) -> None:
    _work(bootstrap, seconds, commits=True)


def _work(bootstrap: str, seconds: float, commits: bool) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    end = until(max(seconds, AT_LEAST_S))
    own = {"transactional.id": f"{CLIENT_ID}-27", "transaction.timeout.ms": TIMEOUT_MS}
    forgetful = Producer(healthy(bootstrap, FORGETFUL) | own)
    forgetful.init_transactions(TIMEOUT_S)
    forgetful.begin_transaction()
    for index in range(RECORDS):
        forgetful.produce(CLIENT_ID, order(index))
    forgetful.flush(TIMEOUT_S)
    if commits:
        forgetful.commit_transaction(TIMEOUT_S)
    reader = Consumer(consumer_settings(bootstrap, f"{CLIENT_ID}-reader", isolation_level="read_committed"))
    reader.subscribe([CLIENT_ID])
    other = Producer(healthy(bootstrap, f"{CLIENT_ID}-other"))
    for tick in paced(end - time.monotonic(), 0.5, other):
        other.produce(CLIENT_ID, order(tick))
        reader.poll(0)
    reader.close()
    with suppress(KafkaException):  # it has ended already, or the coordinator has aborted it
        forgetful.abort_transaction(TIMEOUT_S)
