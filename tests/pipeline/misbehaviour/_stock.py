"""Topics with something in them to read: filled as they should be, for consumers that misbehave."""

import time
from typing import Any

from confluent_kafka import Consumer, Producer

PATIENCE_S = 30.0
VALUE = b'{"order": 1, "state": "paid", "notes": "' + b"none " * 20 + b'"}'


def producer(bootstrap: str, client_id: str) -> Producer:
    """It sends few and large batches, compressed, each record once."""
    own = {"compression.type": "zstd", "enable.idempotence": True, "linger.ms": 200}
    return Producer({"bootstrap.servers": bootstrap, "client.id": f"{client_id}-producer"} | own)


def fill(bootstrap: str, client_id: str, *topics: str, count: int) -> None:
    """`count` records in each."""
    sender = producer(bootstrap, client_id)
    for topic in topics:
        send(sender, topic, count)
    sender.flush(30)


def send(sender: Producer, topic: str, count: int, first: int = 0) -> None:
    """Records from number `first` on, each with a key of its own."""
    for index in range(first, first + count):
        sender.produce(topic, key=f"customer-{index}", value=VALUE)
    sender.poll(0)


def consumer_settings(bootstrap: str, client_id: str, **settings: Any) -> dict[str, Any]:
    """Of librdkafka, for a group of the client's name; `session_timeout_ms` is session.timeout.ms."""
    own = {name.replace("_", "."): value for name, value in settings.items()}
    shared = {"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": client_id}
    return shared | {"auto.offset.reset": "earliest"} | own


def consume(consumer: Consumer, end: float) -> None:
    """Read until `end`, and leave the group."""
    while time.monotonic() < end:
        consumer.consume(100, 0.5)
    consumer.close()


def until(seconds: float) -> float:
    """The monotonic clock in `seconds`."""
    return time.monotonic() + seconds


def goes_on(end: float, done: int, enough: int) -> bool:
    """Until `end`, and on a starved machine until enough was done."""
    return time.monotonic() < end or (done < enough and time.monotonic() < end + PATIENCE_S)
