"""Two groups fall behind while 400 records come in a second. One does for each record what takes 5 ms, one
after the other. The other reads all of them, but no longer commits after its first poll.
"""

import asyncio
import math
import threading
import time

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consumer_settings, producer, send, until

CLIENT_ID = "consumer-lag"
SILENT = f"{CLIENT_ID}-silent"
EXPECTED = {"consumer_lag"}
WORK_S = 0.005
BURST, BURST_S = 200, 0.5
PATIENCE_S = 30  # for the first record


def produce(sender: Producer, done: threading.Event) -> None:
    sent = BURST
    while not done.wait(BURST_S):
        send(sender, CLIENT_ID, BURST, first=sent)
        sent += BURST
    sender.flush(30)


async def consume(bootstrap: str, seconds: float, at_once: int) -> None:
    """`at_once`: records that are worked on at the same time."""
    consumer = AIOKafkaConsumer(
        CLIENT_ID,
        bootstrap_servers=bootstrap,
        client_id=CLIENT_ID,
        group_id=CLIENT_ID,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=1024,
    )
    async with consumer:
        await asyncio.wait_for(consumer.getone(), PATIENCE_S)
        end = until(seconds)
        while time.monotonic() < end:
            for messages in (await consumer.getmany(timeout_ms=500, max_records=100)).values():
                await asyncio.sleep(WORK_S * len(messages) / at_once)


def consume_and_commit(bootstrap: str, done: threading.Event, always: bool) -> None:
    """Each second, or once."""
    consumer = Consumer(consumer_settings(bootstrap, SILENT, enable_auto_commit=False))
    consumer.subscribe([CLIENT_ID])
    due = 0.0
    while not done.is_set():
        messages = consumer.consume(100, 0.2)
        if messages and time.monotonic() >= due:
            consumer.commit(message=messages[-1], asynchronous=False)
            due = until(1.0) if always else math.inf
    consumer.close()


def run(bootstrap: str, seconds: float) -> None:
    _work(bootstrap, seconds, at_once=1, commits_always=False)


def cured(bootstrap: str, seconds: float) -> None:
    _work(bootstrap, seconds, at_once=10, commits_always=True)


def _work(bootstrap: str, seconds: float, at_once: int, commits_always: bool) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    sender, done = producer(bootstrap, CLIENT_ID), threading.Event()
    send(sender, CLIENT_ID, BURST)
    sender.flush(30)
    threads = [
        threading.Thread(target=produce, args=(sender, done)),
        threading.Thread(target=consume_and_commit, args=(bootstrap, done, commits_always)),
    ]
    for thread in threads:
        thread.start()
    try:
        asyncio.run(consume(bootstrap, seconds, at_once))
    finally:
        done.set()
        for thread in threads:
            thread.join()
