"""Does for each record what takes 5 ms, one after the other, while 400 records come in a second."""

import asyncio
import threading
import time

from aiokafka import AIOKafkaConsumer
from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import producer, send, until

CLIENT_ID = "consumer-lag"
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


async def consume(bootstrap: str, seconds: float) -> None:
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
                await asyncio.sleep(WORK_S * len(messages))


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    sender, done = producer(bootstrap, CLIENT_ID), threading.Event()
    send(sender, CLIENT_ID, BURST)
    sender.flush(30)
    busy = threading.Thread(target=produce, args=(sender, done))
    busy.start()
    try:
        asyncio.run(consume(bootstrap, seconds))
    finally:
        done.set()
        busy.join()
