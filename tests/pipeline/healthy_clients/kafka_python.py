"""kafka-python at work as it should be: -m tests.pipeline.healthy_clients.kafka_python BOOTSTRAP SECONDS.

A producer; a producer that seldom has something to say, and a reader that has read all of it; a classic group
of two members, one of which leaves early.
"""

import sys
import time
from collections import Counter

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError

from tests.pipeline.healthy_clients.work import (
    CLICKS,
    QUIET,
    arguments,
    bursts,
    goes_on,
    record,
    say,
    together,
)

NAME = "healthy-kafka-python"
SELDOM_S = 3.0


def _producer(bootstrap: str, role: str) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=bootstrap,
        client_id=f"{NAME}-{role}",
        acks="all",
        enable_idempotence=True,
        compression_type="gzip",
        linger_ms=100,
    )


def produce(bootstrap: str, end: float) -> None:
    producer = _producer(bootstrap, "producer")
    acknowledged: Counter[str] = Counter()
    for burst in bursts(end, 100):
        for sent in [producer.send(CLICKS, key=key, value=value) for key, value in burst]:
            place = sent.get(60)
            acknowledged[f"{place.topic}-{place.partition}"] += 1
    producer.close()
    say(f"{NAME}-producer", acknowledged=acknowledged)


def produce_seldom(bootstrap: str, end: float) -> None:
    producer = _producer(bootstrap, "seldom")
    count = 0
    while time.monotonic() < end:
        key, value = record(count)
        producer.send(QUIET, key=key, value=value).get(60)
        count += 1
        time.sleep(SELDOM_S)
    producer.close()
    say(f"{NAME}-seldom", acknowledged={f"{QUIET}-0": count})


def consume(bootstrap: str, end: float, role: str, group: str, topic: str) -> None:
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id=f"{NAME}-{role}",
        group_id=f"{NAME}-{group}",
        auto_offset_reset="earliest",
    )
    count = 0
    while goes_on(end, count):
        try:
            count += sum(map(len, consumer.poll(timeout_ms=500).values()))
        except KafkaError as error:  # it tells of brokers that are gone for a moment
            if not error.retriable:
                raise
    consumer.close()
    say(f"{NAME}-{role}", consumed=count)


def main(bootstrap: str, seconds: float) -> int:
    now = time.monotonic()
    end = now + seconds
    return together(
        [
            (produce, (bootstrap, end)),
            (produce_seldom, (bootstrap, end)),
            (consume, (bootstrap, end, "caught-up", "caught-up", QUIET)),
            (consume, (bootstrap, end, "member-1", "group", CLICKS)),
            (consume, (bootstrap, now + seconds * 2 / 3, "member-2", "group", CLICKS)),
        ]
    )


if __name__ == "__main__":
    sys.exit(main(*arguments()))
