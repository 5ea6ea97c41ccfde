"""A web handler opens a consumer for each request it serves, in the group of a service that is always there:
the whole group rebalances when it comes, and again when it goes.
"""

import threading
import time

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consumer_settings, fill, until

CLIENT_ID = "rebalance-storm"
EXPECTED = {"rebalance_storm", "connection_churn"}
SERVICE, HANDLER = f"{CLIENT_ID}-service", f"{CLIENT_ID}-handler"
SERVED_S = 0.6
PAUSE_S = 0.7


def member(bootstrap: str, client_id: str) -> Consumer:
    settings = consumer_settings(bootstrap, client_id, session_timeout_ms=6000, heartbeat_interval_ms=500)
    consumer = Consumer(settings | {"group.id": CLIENT_ID})
    consumer.subscribe([CLIENT_ID])
    return consumer


def serve(bootstrap: str, end: float) -> None:
    consumer = member(bootstrap, SERVICE)
    while time.monotonic() < end:
        consumer.consume(100, 0.5)
    consumer.close()


def handle(bootstrap: str, end: float) -> None:
    consumer = member(bootstrap, HANDLER)
    while time.monotonic() < end and not consumer.assignment():
        consumer.poll(0.1)
    consumer.consume(100, SERVED_S)
    consumer.close()


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=4)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end = until(seconds)
    service = threading.Thread(target=serve, args=(bootstrap, end))
    service.start()
    while time.monotonic() < end:
        handle(bootstrap, end)
        time.sleep(PAUSE_S)
    service.join()
