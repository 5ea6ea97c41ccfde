"""Stale leader: a home-made producer keeps to the broker that led when it was set up, whatever that answers.

Requests by hand on aiokafka's connections: whatever its settings, a library asks for metadata on
NOT_LEADER_OR_FOLLOWER.
"""

import asyncio

from aiokafka.client import AIOKafkaClient
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.structs import TopicPartition

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import order

CLIENT_ID = "stale-leader"
EXPECTED = {"stale_leader"}
GZIP = 1
RETRY_S = 0.2


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    asyncio.run(_produce(bootstrap, seconds))


async def _produce(bootstrap: str, seconds: float) -> None:
    client = AIOKafkaClient(bootstrap_servers=bootstrap, client_id=CLIENT_ID)
    await client.bootstrap()
    leader = None
    while leader in (None, -1):  # brokers hear of a new topic one after the other
        await client.set_topics([CLIENT_ID])
        leader = client.cluster.leader_for_partition(TopicPartition(CLIENT_ID, 0))
        await asyncio.sleep(RETRY_S)
    former = next(broker.nodeId for broker in client.cluster.brokers() if broker.nodeId != leader)
    try:
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            await client.send(former, ProduceRequest(None, -1, 30_000, [(CLIENT_ID, [(0, _batch())])]))
            await asyncio.sleep(RETRY_S)
    finally:
        await client.close()


def _batch() -> bytes:
    builder = BatchBuilder(1 << 16, GZIP)
    for index in range(20):
        builder.append(timestamp=None, key=None, value=order(index))
    return bytes(builder._build())
