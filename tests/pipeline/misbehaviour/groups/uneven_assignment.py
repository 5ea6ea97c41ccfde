"""Six topics of one partition each, three members, partition.assignment.strategy=range: it divides topic by
topic, so that the first member gets all six partitions and the others none.
"""

import threading

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consume, consumer_settings, fill, until

CLIENT_ID = "uneven-assignment"
EXPECTED = {"uneven_assignment"}
TOPICS = [f"{CLIENT_ID}-{number}" for number in range(6)]
MEMBERS = 3


def work(bootstrap: str, end: float, strategy: str, number: int) -> None:
    own = consumer_settings(bootstrap, f"{CLIENT_ID}-{number}", partition_assignment_strategy=strategy)
    consumer = Consumer(own | {"group.id": CLIENT_ID})
    consumer.subscribe(TOPICS)
    consume(consumer, end)


def run(bootstrap: str, seconds: float) -> None:
    _share(bootstrap, seconds, "range")


def cured(bootstrap: str, seconds: float) -> None:
    _share(bootstrap, seconds, "cooperative-sticky")


def _share(bootstrap: str, seconds: float, strategy: str) -> None:
    _topics.create(bootstrap, CLIENT_ID, *TOPICS, partitions=1)
    fill(bootstrap, CLIENT_ID, *TOPICS, count=50)
    end = until(seconds)
    members = [
        threading.Thread(target=work, args=(bootstrap, end, strategy, number)) for number in range(MEMBERS)
    ]
    for thread in members:
        thread.start()
    for thread in members:
        thread.join()
