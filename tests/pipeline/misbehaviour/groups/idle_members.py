"""Three instances of a service read a topic of two partitions."""

import threading

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consume, consumer_settings, fill, until

CLIENT_ID = "idle-members"
EXPECTED = {"idle_members"}
PARTITIONS = 2


def work(bootstrap: str, end: float, number: int) -> None:
    own = consumer_settings(bootstrap, f"{CLIENT_ID}-{number}") | {"group.id": CLIENT_ID}
    consumer = Consumer(own)
    consumer.subscribe([CLIENT_ID])
    consume(consumer, end)


def run(bootstrap: str, seconds: float) -> None:
    _share(bootstrap, seconds, members=3)


def cured(bootstrap: str, seconds: float) -> None:
    _share(bootstrap, seconds, members=PARTITIONS)


def _share(bootstrap: str, seconds: float, members: int) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=PARTITIONS)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    end = until(seconds)
    threads = [threading.Thread(target=work, args=(bootstrap, end, number)) for number in range(members)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
