"""A web handler opens a consumer for each request it serves, in the group of a service that is always there:
the whole group rebalances when it comes, and again when it goes.
"""

import threading
import time

from confluent_kafka import Consumer, TopicPartition

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import PATIENCE_S, consumer_settings, fill, goes_on, until

CLIENT_ID = "rebalance-storm"
EXPECTED = {"rebalance_storm", "connection_churn", "eager_rebalancing"}
SERVICE, HANDLER = f"{CLIENT_ID}-service", f"{CLIENT_ID}-handler"
PARTITIONS = 4
SERVED_S = 0.6
PAUSE_S = 0.7
ENOUGH = 7  # tasks, each of which makes the group rebalance twice


def member(bootstrap: str, client_id: str) -> Consumer:
    settings = consumer_settings(bootstrap, client_id, session_timeout_ms=6000, heartbeat_interval_ms=500)
    consumer = Consumer(settings | {"group.id": CLIENT_ID})
    consumer.subscribe([CLIENT_ID])
    return consumer


def begin_at_first(bootstrap: str) -> None:
    """By a commit, so that nobody has to look for a beginning."""
    consumer = Consumer(consumer_settings(bootstrap, SERVICE) | {"group.id": CLIENT_ID})
    first = [TopicPartition(CLIENT_ID, partition, 0) for partition in range(PARTITIONS)]
    consumer.commit(offsets=first, asynchronous=False)
    consumer.close()


def serve(bootstrap: str, done: threading.Event) -> None:
    consumer = member(bootstrap, SERVICE)
    while not done.is_set():
        consumer.consume(100, 0.5)
    consumer.close()


def handle(bootstrap: str) -> None:
    consumer = member(bootstrap, HANDLER)
    end = until(PATIENCE_S)
    while time.monotonic() < end and not consumer.assignment():
        consumer.poll(0.1)
    consumer.consume(100, SERVED_S)
    consumer.close()


def cured(bootstrap: str, seconds: float) -> None:
    """The service does the work of the handlers."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=PARTITIONS)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    begin_at_first(bootstrap)
    done = threading.Event()
    service = threading.Thread(target=serve, args=(bootstrap, done))
    service.start()
    time.sleep(seconds)
    done.set()
    service.join()


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=PARTITIONS)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    begin_at_first(bootstrap)
    end, done, handled = until(seconds), threading.Event(), 0
    service = threading.Thread(target=serve, args=(bootstrap, done))
    service.start()
    while goes_on(end, handled, ENOUGH):
        handle(bootstrap)
        handled += 1
        time.sleep(PAUSE_S)
    done.set()
    service.join()
