"""A consumer that ends at once without a close, as with SIGKILL, and is started again."""

import multiprocessing
import os
import time

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import PATIENCE_S, consumer_settings, fill, until

CLIENT_ID = "unclean-stops"
EXPECTED = {"unclean_stops"}
DEPLOYMENTS = 3
WORK_S = 1.5


def work(bootstrap: str, closes: bool) -> None:
    """In a process of its own."""
    own = consumer_settings(bootstrap, CLIENT_ID, session_timeout_ms=6000, heartbeat_interval_ms=1000)
    consumer = Consumer(own)
    consumer.subscribe([CLIENT_ID])
    end = until(PATIENCE_S)
    while time.monotonic() < end and not consumer.assignment():
        consumer.poll(0.1)
    end = until(WORK_S)
    while time.monotonic() < end:
        consumer.consume(100, 0.2)
    consumer.commit(asynchronous=False)
    if not closes:
        os._exit(0)
    consumer.close()  # librdkafka has sent what is due when the process ends by itself, and not before


def deploy(bootstrap: str, closes: bool) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    for _ in range(DEPLOYMENTS):
        process = multiprocessing.get_context("spawn").Process(target=work, args=(bootstrap, closes))
        process.start()
        process.join()


def run(bootstrap: str, seconds: float) -> None:
    deploy(bootstrap, closes=False)


def cured(bootstrap: str, seconds: float) -> None:
    deploy(bootstrap, closes=True)
