"""librdkafka (confluent-kafka) at work until it is killed: ground.py says how it is called."""

import sys
import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

BOOTSTRAP, TOPIC, KIND = sys.argv[1:]
PARTITIONS = 3
PAUSE_S = 0.025
COMMON: dict[str, Any] = {
    "bootstrap.servers": BOOTSTRAP,
    "client.id": "librdkafka-scenario",
    "socket.timeout.ms": 4000,
    "topic.metadata.propagation.max.ms": 1000,
}
if KIND == "sasl":
    COMMON |= {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
    }


def produce() -> None:
    """Records to all partitions in turn; a new producer after a fatal error."""
    while True:
        producer = Producer(COMMON | {"linger.ms": 5, "enable.idempotence": True})
        fatal: list[KafkaError] = []
        producer_ends = False
        for index in range(1 << 30):
            try:
                producer.produce(
                    TOPIC,
                    str(index),
                    partition=index % PARTITIONS,
                    on_delivery=lambda error, _, fatal=fatal: fatal.append(error) if error else None,
                )
            except BufferError:
                pass
            except KafkaException as failed:
                producer_ends = failed.args[0].fatal()
            producer.poll(0)
            time.sleep(PAUSE_S)
            if producer_ends or any(error.fatal() for error in fatal):
                print("fatal", fatal, flush=True)
                break
            fatal.clear()


def transact() -> None:
    """One transaction after another; a new producer after a fatal error, a second later."""
    while True:
        producer = Producer(COMMON | {"transactional.id": TOPIC, "linger.ms": 5})
        try:
            producer.init_transactions(10)
            while True:
                producer.begin_transaction()
                for index in range(PARTITIONS):
                    producer.produce(TOPIC, str(index), partition=index)
                producer.commit_transaction(10)
                time.sleep(0.1)
        except KafkaException as failed:
            print("transaction", failed, flush=True)
            if not failed.args[0].fatal():
                _abort(producer)
        time.sleep(1)


def _abort(producer: Producer) -> None:
    try:
        producer.abort_transaction(5)
    except KafkaException as failed:
        print("abort", failed, flush=True)


def consume() -> None:
    """Read in a classic group, and commit twice a second."""
    consumer = Consumer(
        COMMON
        | {
            "group.id": TOPIC,
            "auto.offset.reset": "latest",
            "auto.commit.interval.ms": 500,
            "heartbeat.interval.ms": 300,
            "session.timeout.ms": 10_000,
            "check.crcs": True,
        }
    )
    consumer.subscribe([TOPIC])
    while True:
        message = consumer.poll(0.5)
        if message is not None and message.error():
            print("consumer", message.error(), flush=True)


threading.Thread(target=consume, daemon=True).start()
(transact if KIND == "transactions" else produce)()
