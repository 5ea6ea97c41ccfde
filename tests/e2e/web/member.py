"""A member of a consumer group, as a program: LIBRARY BOOTSTRAP TOPIC GROUP CLIENT_ID SESSION_MS. It reads
until SIGTERM, and then leaves.
"""

import asyncio
import signal
import sys
from typing import Any

SESSION_MS = 6000  # the shortest that brokers allow
HEARTBEAT_MS, COMMIT_MS = 1000, 1000
ended: list[int] = []


def librdkafka(bootstrap: str, topic: str, group: str, client_id: str, session_ms: int) -> None:
    from confluent_kafka import Consumer

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "group.id": group,
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": HEARTBEAT_MS,
        "auto.commit.interval.ms": COMMIT_MS,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    while not ended:
        consumer.poll(0.1)
    consumer.close()


def kafka_python(bootstrap: str, topic: str, group: str, client_id: str, session_ms: int) -> None:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=client_id,
        group_id=group,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    consumer.partitions_for_topic(topic)
    consumer.subscribe([topic])
    while not ended:
        consumer.poll(100)
    consumer.close()


def aiokafka(bootstrap: str, topic: str, group: str, client_id: str, session_ms: int) -> None:
    from aiokafka import AIOKafkaConsumer

    async def read() -> None:
        settings = {"session_timeout_ms": session_ms, "heartbeat_interval_ms": HEARTBEAT_MS}
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, client_id=client_id, group_id=group, **settings
        )
        await consumer.start()
        while not ended:
            await consumer.getmany(timeout_ms=100)
        await consumer.stop()

    asyncio.run(read())


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
    library, bootstrap, topic, group, client_id, session_ms = sys.argv[1:]
    read = {"librdkafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aiokafka}[library]
    read(bootstrap, topic, group, client_id, int(session_ms))
