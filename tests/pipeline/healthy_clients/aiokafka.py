"""aiokafka at work as it should be: -m tests.pipeline.healthy_clients.aiokafka BOOTSTRAP SECONDS.

An idempotent producer, and a classic group of two members.
"""

import asyncio
import sys
import time
from collections import Counter

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.pipeline.healthy_clients.work import BURST_S, PAYMENTS, arguments, goes_on, record, say

NAME = "healthy-aiokafka"


async def produce(bootstrap: str, end: float) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        client_id=f"{NAME}-producer",
        enable_idempotence=True,
        compression_type="gzip",
        linger_ms=100,
    )
    acknowledged: Counter[str] = Counter()
    index = 0
    async with producer:
        while time.monotonic() < end:
            sent = []
            for _ in range(100):
                key, value = record(index)
                sent.append(await producer.send(PAYMENTS, value, key))
                index += 1
            for place in await asyncio.gather(*sent):
                acknowledged[f"{place.topic}-{place.partition}"] += 1
            await asyncio.sleep(BURST_S)
    say(f"{NAME}-producer", acknowledged=acknowledged)


async def consume(bootstrap: str, end: float, member: int) -> None:
    consumer = AIOKafkaConsumer(
        PAYMENTS,
        bootstrap_servers=bootstrap,
        client_id=f"{NAME}-member-{member}",
        group_id=f"{NAME}-group",
        auto_offset_reset="earliest",
    )
    count = 0
    async with consumer:
        while goes_on(end, count):
            count += sum(map(len, (await consumer.getmany(timeout_ms=500)).values()))
    say(f"{NAME}-member-{member}", consumed=count)


async def main(bootstrap: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    await asyncio.gather(produce(bootstrap, end), consume(bootstrap, end, 1), consume(bootstrap, end, 2))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*arguments())))
