"""The demo's clients, in a process of their own: producers and consumers of confluent-kafka, a thread each.

`python -m klamm.cli.demo.traffic BOOTSTRAP [--create]` runs until SIGTERM; with --create it makes the topics
first, and removes them and its consumer groups at the end.
"""

from __future__ import annotations

import json
import logging
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from threading import Event, Thread
from typing import Any

PARTITIONS = 4
ORDERS, PAYMENTS, IMPORTS, CLICKS = TOPICS = (
    "klamm-demo-orders",
    "klamm-demo-payments",
    "klamm-demo-imports",
    "klamm-demo-clicks",
)
ABSENT = "klamm-demo-reports"  # nobody makes it: one client asks for it all the same
GROUPS = BILLING, FRAUD, REPORTS, RESTORE = (
    "klamm-demo-billing",
    "klamm-demo-fraud",
    "klamm-demo-reports",
    "klamm-demo-restore",
)

TICK_S = 0.05
RESTART_S = 1.0
ADMIN_S = 10.0
CLOSE_S = 5.0  # for all clients together, which close side by side

Run = Callable[[str, Event], None]
Record = Callable[[Random], tuple[str, dict[str, Any]]]  # a key and a value


def order(draw: Random) -> tuple[str, dict[str, Any]]:
    """365 to 661 bytes."""
    items = [_item(draw) for _ in range(draw.randint(6, 12))]
    cents = sum(item["count"] * item["cents"] for item in items)
    customer = f"customer-{draw.randrange(1000)}"
    return customer, {"order": draw.randrange(10**6), "customer": customer, "items": items, "cents": cents}


def payment(draw: Random) -> tuple[str, dict[str, Any]]:
    """233 to 240 bytes."""
    number = draw.randrange(10**6)
    card = {"kind": draw.choice(("credit", "debit")), "token": f"{draw.getrandbits(256):064x}", "month": 11}
    address = {
        "street": f"{draw.randrange(1, 200)} Long Lane",
        "city": "Springfield",
        "zip": draw.randrange(10**5),
    }
    return f"order-{number}", {
        "order": number,
        "cents": draw.randrange(99, 99_999),
        "card": card,
        "address": address,
    }


def stock(draw: Random) -> tuple[str, dict[str, Any]]:
    """65 to 69 bytes."""
    item = _item(draw)
    return item["sku"], {**item, "shelf": draw.randrange(5000)}


def click(draw: Random) -> tuple[str, dict[str, Any]]:
    """53 to 62 bytes."""
    page = draw.choice(("/", "/search", "/basket", "/checkout"))
    return f"{draw.getrandbits(32):08x}", {"page": page, "ms": draw.randrange(20, 900), "browser": "Firefox"}


def _item(draw: Random) -> dict[str, Any]:
    return {
        "sku": f"sku-{draw.randrange(10**4)}",
        "count": draw.randint(1, 5),
        "cents": draw.randrange(99, 9999),
    }


def producer(client_id: str, topic: str, per_second: int, record: Record, **settings: Any) -> Run:
    """Sends records evenly over time. After an error that ends a producer, the next begins."""

    def run(bootstrap: str, stop: Event) -> None:
        from confluent_kafka import KafkaException, Producer

        draw = Random(client_id)
        kafka = Producer(_settings(bootstrap, client_id, settings))
        owed = 0.0
        while not stop.wait(TICK_S):
            owed += per_second * TICK_S
            while owed >= 1:
                key, value = record(draw)
                try:
                    kafka.produce(topic, json.dumps(value), key)
                except BufferError:  # the cluster takes less than this: wait with it
                    break
                except KafkaException:  # it is fatal, as OUT_OF_ORDER_SEQUENCE_NUMBER is from a rule
                    kafka.purge()
                    stop.wait(RESTART_S)
                    kafka, owed = Producer(_settings(bootstrap, client_id, settings)), 0.0
                    break
                owed -= 1
            kafka.poll(0)
        kafka.flush(2)

    return run


def group_member(client_id: str, group: str, topics: Sequence[str], **settings: Any) -> Run:
    """Consumes in a group and commits once a second. It stays: a mock group stalls when one leaves."""

    def run(bootstrap: str, stop: Event) -> None:
        from confluent_kafka import Consumer

        mine = {
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            **settings,
        }
        kafka = Consumer(_settings(bootstrap, client_id, mine))
        kafka.subscribe(list(topics))
        while not stop.wait(TICK_S):
            kafka.consume(500, 0)
        kafka.close()

    return run


def replayer(client_id: str, topic: str, every_s: float) -> Run:
    """Starts again and again at an offset that does not exist, as after a restore from an old backup."""

    def run(bootstrap: str, stop: Event) -> None:
        from confluent_kafka import Consumer, TopicPartition

        mine = {"group.id": RESTORE, "auto.offset.reset": "latest", "enable.auto.commit": False}
        kafka = Consumer(_settings(bootstrap, client_id, mine))
        while not stop.is_set():
            kafka.assign([TopicPartition(topic, 0, 1 << 40)])
            rest = every_s
            while rest > 0 and not stop.wait(TICK_S):
                kafka.consume(100, 0)
                rest -= TICK_S
        kafka.close()

    return run


CLIENTS: tuple[Run, ...] = (
    producer(
        "orders-service",
        ORDERS,
        200,
        order,
        **{"linger.ms": 20, "compression.type": "lz4", "enable.idempotence": True},
    ),
    producer("payments-service", PAYMENTS, 60, payment, **{"linger.ms": 5}),
    producer("legacy-importer", IMPORTS, 120, stock, **{"linger.ms": 0, "batch.num.messages": 1}),
    producer("web-clicks", CLICKS, 60, click, **{"linger.ms": 50, "acks": 1}),
    group_member("billing-1", BILLING, [ORDERS, PAYMENTS]),
    group_member("billing-2", BILLING, [ORDERS, PAYMENTS]),
    group_member("fraud-check", FRAUD, [PAYMENTS, CLICKS], **{"fetch.wait.max.ms": 50}),
    group_member("reporting", REPORTS, [ABSENT], **{"topic.metadata.refresh.interval.ms": 2000}),
    replayer("restore-job", PAYMENTS, every_s=3),
)


def _settings(bootstrap: str, client_id: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "client.id": client_id, "logger": QUIET, **settings}


QUIET = logging.getLogger("klamm.demo")  # librdkafka's lines about the demo's own faults
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False


def create(bootstrap: str) -> None:
    """Make the topics; those that an earlier demo left behind are used as they are."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient(_settings(bootstrap, "klamm-demo", {}))
    made = admin.create_topics([NewTopic(topic, PARTITIONS, -1) for topic in TOPICS], request_timeout=ADMIN_S)
    for future in made.values():
        try:
            future.result(ADMIN_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def remove(bootstrap: str) -> list[str]:
    """Removes topics and groups; gives one line for each that could not be removed."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(_settings(bootstrap, "klamm-demo", {}))
    gone = {
        **admin.delete_topics(list(TOPICS), request_timeout=ADMIN_S),
        **admin.delete_consumer_groups(list(GROUPS), request_timeout=ADMIN_S),
    }
    left = []
    for name, future in gone.items():
        try:
            future.result(ADMIN_S)
        except KafkaException as error:
            if error.args[0].code() not in (KafkaError.GROUP_ID_NOT_FOUND, KafkaError.UNKNOWN_TOPIC_OR_PART):
                left.append(f"could not remove {name}: {error.args[0].str()}")
    return left


def main(bootstrap: str, with_topics: bool) -> int:
    """Run every client until SIGTERM."""
    from confluent_kafka import KafkaException

    stop = Event()
    left: list[str] = []
    try:
        if with_topics:
            create(bootstrap)
        threads = [Thread(target=run, args=(bootstrap, stop), daemon=True) for run in CLIENTS]
        for thread in threads:
            thread.start()
        signal.sigwait({signal.SIGTERM})
        stop.set()
        ends_at = time.monotonic() + CLOSE_S
        for thread in threads:
            thread.join(max(ends_at - time.monotonic(), 0))
    except KafkaException as error:
        print(f"the demo's clients cannot work on this cluster: {error.args[0].str()}", file=sys.stderr)
        return 1
    finally:
        if with_topics:
            left = remove(bootstrap)
            print(*left, sep="\n", end="\n" if left else "", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGTERM}
    )  # before librdkafka's threads, which inherit it
    sys.exit(main(sys.argv[1], "--create" in sys.argv[2:]))
