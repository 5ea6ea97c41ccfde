"""Weak acks: one producer with the defaults of aiokafka, acks=1 and no idempotence; one with acks=0, for
speed.
"""

import asyncio

from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "weak-acks"
EXPECTED = {"weak_acks"}


async def _with_defaults(bootstrap: str, seconds: float) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, client_id=f"{CLIENT_ID}-default", compression_type="gzip", linger_ms=100
    )
    await producer.start()
    try:
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        index = 0
        while loop.time() < end:
            await producer.send(CLIENT_ID, order(index))
            await asyncio.sleep(0.02)
            index += 1
    finally:
        await producer.stop()


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    asyncio.run(_with_defaults(bootstrap, seconds / 2))
    settings = healthy(bootstrap, f"{CLIENT_ID}-none") | {"enable.idempotence": False, "acks": 0}
    producer = Producer(settings)
    for index in paced(seconds / 2, 0.02):
        producer.produce(CLIENT_ID, order(index))
        producer.poll(0)
    producer.flush(30)
