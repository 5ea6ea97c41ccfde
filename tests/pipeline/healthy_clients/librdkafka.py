"""librdkafka at work as it should be: -m tests.pipeline.healthy_clients.librdkafka BOOTSTRAP SECONDS.

A producer; a transactional producer that reads what the first wrote; a group of KIP-848 whose third member
comes later; a reader without a group that keeps up; an administrator who looks now and then. Each says at its
end, in a line of JSON, what it did.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.pipeline.healthy_clients.work import (
    INVOICES,
    ORDERS,
    PARTITIONS,
    PATIENCE_S,
    arguments,
    bursts,
    goes_on,
    say,
    together,
)

NAME = "healthy-librdkafka"
TRANSACTION_S = 1.0


def settings(bootstrap: str, role: str) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "client.id": f"{NAME}-{role}", "log_level": 3}


class Statistics:
    """The last that librdkafka told of itself."""

    def __init__(self) -> None:
        self.last: dict[str, Any] = {}
        self.count = 0

    def options(self) -> dict[str, Any]:
        return {"statistics.interval.ms": 500, "stats_cb": self._keep}

    def _keep(self, text: str) -> None:
        self.last = json.loads(text)
        self.count += 1

    def of_brokers(self) -> dict[str, dict[str, int]]:
        """Counts of sent and received bytes, by node id."""
        names = {"tx": "requests", "txbytes": "request_bytes", "rx": "responses", "rxbytes": "response_bytes"}
        return {
            str(broker["nodeid"]): {label: broker[name] for name, label in names.items()}
            for broker in self.last["brokers"].values()
            if broker["nodeid"] >= 0
        }


def produce(bootstrap: str, end: float, total: Future[int]) -> None:
    """`total`: how many were acknowledged."""
    statistics = Statistics()
    own = {"enable.idempotence": True, "compression.type": "lz4", "linger.ms": 100, **statistics.options()}
    producer = Producer(settings(bootstrap, "producer") | own)
    acknowledged: Counter[str] = Counter()

    def delivered(error: object, message: Message) -> None:
        acknowledged["failed" if error else f"{message.topic()}-{message.partition()}"] += 1

    for burst in bursts(end, 300):
        for key, value in burst:
            producer.produce(ORDERS, key=key, value=value, on_delivery=delivered)
        producer.poll(0.05)
    producer.flush(PATIENCE_S)
    total.set_result(acknowledged.total())
    seen = statistics.count
    while statistics.count < seen + 2:
        producer.poll(0.2)
    say(f"{NAME}-producer", acknowledged=acknowledged, brokers=statistics.of_brokers())


def transact(bootstrap: str, end: float) -> None:
    """Consume, transform, produce, in a transaction a second."""
    own = {"transactional.id": f"{NAME}-transactor", "compression.type": "zstd", "linger.ms": 50}
    producer = Producer(settings(bootstrap, "transactor") | own)
    reader = {
        "group.id": f"{NAME}-transformers",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(
        settings(bootstrap, "transactor-reader") | reader | {"isolation.level": "read_committed"}
    )
    consumer.subscribe([ORDERS])
    _patiently(producer.init_transactions)
    committed = aborted = 0
    while goes_on(end, committed):
        messages = [one for one in consumer.consume(1000, TRANSACTION_S) if not one.error()]
        if not messages:
            continue
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(INVOICES, key=message.key(), value=message.value())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 30
            )
            _patiently(producer.commit_transaction)
            committed += len(messages)
        except KafkaException as error:
            aborted += 1
            if error.args[0].fatal():  # the coordinator has waited too long for it
                producer = Producer(settings(bootstrap, "transactor") | own)
                _patiently(producer.init_transactions)
            elif error.args[0].txn_requires_abort():
                _patiently(producer.abort_transaction)
            else:
                raise
            _read_again(consumer)
    consumer.close()
    say(f"{NAME}-transactor", committed=committed, aborted=aborted)


def _patiently(act: Callable[[float], None]) -> None:
    while True:
        try:
            act(30.0)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def _read_again(consumer: Consumer) -> None:
    """From what is committed."""
    for partition in consumer.committed(consumer.assignment(), 30):
        consumer.seek(partition if partition.offset >= 0 else _first(partition))


def _first(partition: TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition, OFFSET_BEGINNING)


def consume(bootstrap: str, end: float, member: int, begin: float) -> None:
    """A member of the group of KIP-848, from `begin` on; one that comes later may find nothing to read."""
    time.sleep(max(0.0, begin - time.monotonic()))
    own = {"group.id": f"{NAME}-group", "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings(bootstrap, f"member-{member}") | own)
    consumer.subscribe([ORDERS])
    count, later = 0, begin > 0
    while goes_on(end, count or later):
        count += sum(not message.error() for message in consumer.consume(500, 0.5))
    consumer.close()
    say(f"{NAME}-member-{member}", consumed=count)


def read(bootstrap: str, end: float, total: Future[int]) -> None:
    """All that is produced, from the beginning on; no group."""
    own = {"group.id": f"{NAME}-reader", "enable.auto.commit": False, "enable.auto.offset.store": False}
    consumer = Consumer(settings(bootstrap, "reader") | own)
    consumer.assign(
        [TopicPartition(ORDERS, number, OFFSET_BEGINNING) for number in range(PARTITIONS[ORDERS])]
    )
    count: Counter[str] = Counter()
    while goes_on(end, total.done() and count.total() >= total.result()):
        for message in consumer.consume(500, 0.5):
            if not message.error():
                count[f"{message.topic()}-{message.partition()}"] += 1
    consumer.close()
    say(f"{NAME}-reader", consumed=count)


def look(bootstrap: str, end: float) -> None:
    """Now and then, at topics, groups and offsets."""
    admin = AdminClient(settings(bootstrap, "admin"))
    looks = 0
    while time.monotonic() < end:
        admin.list_topics(timeout=30)
        admin.list_consumer_groups().result(30)
        looks += 1
        time.sleep(min(10.0, max(0.0, end - time.monotonic())))
    say(f"{NAME}-admin", looks=looks)


def main(bootstrap: str, seconds: float) -> int:
    now = time.monotonic()
    end = now + seconds
    total: Future[int] = Future()
    work: list[tuple[Any, tuple[Any, ...]]] = [
        (produce, (bootstrap, end, total)),
        (transact, (bootstrap, end)),
        (read, (bootstrap, end, total)),
        (look, (bootstrap, end)),
        *(
            (consume, (bootstrap, end, member, now + seconds / 3 if member == 3 else 0.0))
            for member in (1, 2, 3)
        ),
    ]
    return together(work)


if __name__ == "__main__":
    sys.exit(main(*arguments()))
