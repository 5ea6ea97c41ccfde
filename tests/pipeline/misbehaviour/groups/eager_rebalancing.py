"""A service of four instances is deployed anew, one instance after the other, with the assignors that
librdkafka has unless told.
"""

import threading
import time
from typing import Any

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import PATIENCE_S, consumer_settings, fill, until

CLIENT_ID = "eager-rebalancing"
EXPECTED = {"eager_rebalancing", "rebalance_storm"}
INSTANCES = 4
PARTITIONS = 8
RESTART_S = 1.5  # until an instance is there again: the others have its partitions meanwhile


class Instance:
    """A member in a thread of its own, until it is stopped."""

    def __init__(self, bootstrap: str, number: int, static: bool) -> None:
        own: dict[str, Any] = {"group.instance.id": f"{CLIENT_ID}-{number}"} if static else {}
        settings = consumer_settings(bootstrap, f"{CLIENT_ID}-{number}", heartbeat_interval_ms=500)
        self.consumer = Consumer(settings | {"group.id": CLIENT_ID} | own)
        self.consumer.subscribe([CLIENT_ID])
        self.ends, self.reads = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self._work)
        self.thread.start()
        self.reads.wait(PATIENCE_S)

    def _work(self) -> None:
        while not self.ends.is_set():
            self.consumer.consume(100, 0.2)
            if self.consumer.assignment():
                self.reads.set()
        self.consumer.close()

    def stop(self) -> None:
        self.ends.set()
        self.thread.join()


def run(bootstrap: str, seconds: float) -> None:
    _deploy(bootstrap, seconds, static=False)


def cured(bootstrap: str, seconds: float) -> None:
    """The instances are static members, which have their partitions again after a restart."""
    _deploy(bootstrap, seconds, static=True)


def _deploy(bootstrap: str, seconds: float, static: bool) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=PARTITIONS)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=800)
    end = until(seconds)
    running = [Instance(bootstrap, number, static) for number in range(INSTANCES)]
    for number in range(INSTANCES):
        running[number].stop()
        time.sleep(RESTART_S)
        running[number] = Instance(bootstrap, number, static)
    time.sleep(max(0.0, end - time.monotonic()))
    for instance in running:
        instance.stop()
