"""Three instances of a service read a topic of two partitions."""

import threading
import time

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consumer_settings, fill, until

CLIENT_ID = "idle-members"
EXPECTED = {"idle_members"}
PARTITIONS = 2


def consume(bootstrap: str, end: float, number: int) -> None:
    own = consumer_settings(bootstrap, f"{CLIENT_ID}-{number}") | {"group.id": CLIENT_ID}
    consumer = Consumer(own)
    consumer.subscribe([CLIENT_ID])
    while time.monotonic() < end:
        consumer.consume(100, 0.5)
    consumer.close()


def run(bootstrap: str, seconds: float) -> None:
    _share(bootstrap, seconds, members=3)


def cured(bootstrap: str, seconds: float) -> None:
    _share(bootstrap, seconds, members=PARTITIONS)


def _share(bootstrap: str, seconds: float, members: int) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=PARTITIONS)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end = until(seconds)
    threads = [threading.Thread(target=consume, args=(bootstrap, end, number)) for number in range(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
