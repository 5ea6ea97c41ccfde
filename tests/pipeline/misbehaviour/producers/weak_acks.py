"""Weak acks: one producer with the defaults of aiokafka, acks=1 and no idempotence; one with acks=0, for
speed.
"""

import asyncio
from typing import Any

from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "weak-acks"
EXPECTED = {"weak_acks"}


async def _aiokafka(bootstrap: str, seconds: float, **own: Any) -> None:
    settings = {"client_id": f"{CLIENT_ID}-default", "compression_type": "gzip", "linger_ms": 200}
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **settings, **own)
    await producer.start()
    try:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end:
            for index in range(20):
                await producer.send(CLIENT_ID, order(index))
            await producer.flush()
            await asyncio.sleep(0.2)
    finally:
        await producer.stop()


def _librdkafka(bootstrap: str, seconds: float, own: dict[str, Any]) -> None:
    producer = Producer(healthy(bootstrap, f"{CLIENT_ID}-none") | own)
    for tick in paced(seconds, 0.2, producer):
        for index in range(20):
            producer.produce(CLIENT_ID, order(tick * 20 + index))


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    asyncio.run(_aiokafka(bootstrap, seconds / 2))
    _librdkafka(bootstrap, seconds / 2, {"enable.idempotence": False, "acks": 0})


def cured(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    asyncio.run(_aiokafka(bootstrap, seconds / 2, acks="all", enable_idempotence=True))
    _librdkafka(bootstrap, seconds / 2, {"enable.idempotence": True, "acks": "all"})
