"""A shop at work, lightly: one librdkafka client produces record after record, another reads them. A third
asks for metadata when it is told to.
"""

import itertools
import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, ClusterMetadata

from tests.brokers.kraft import Cluster
from tests.brokers.processes import wait_for
from tests.e2e import topics
from tests.e2e.klamm_process import Klamm, klamm_in_front_of

LEADER = 2  # of the topic's one partition
SHOP, BILLING, PROBE = "shop", "billing", "probe"  # client ids; the second is the group too
PAUSE_S = 0.02  # after each record
PATIENCE_S = 60.0
COMMON: dict[str, Any] = {
    "log_level": 0,
    "socket.timeout.ms": 20_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 200,
}


class Delivery(NamedTuple):
    """A record, how it ended for the producer (the name of an error, or None), and how long that took."""

    value: bytes
    error: str | None
    took_s: float


class Shop:
    """`delivered`: every record, in the order in which they were produced. `read`: what came back."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        self.delivered: list[Delivery] = []
        self.read: list[bytes | None] = []
        self.links: dict[int, tuple[int, int]] = {}
        self.between, self.end = threading.Lock(), threading.Event()
        own = {
            "client.id": SHOP,
            "message.timeout.ms": 30_000,
            "statistics.interval.ms": 100,
            "stats_cb": self._stats,
        }
        self.producer = Producer({**COMMON, "bootstrap.servers": bootstrap, **own})
        self.threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]

    def deliveries(self, count: int, after: Callable[[], object] | None = None) -> list[Delivery]:
        """The first records that are produced after what is done between two of them."""
        with self.between:
            first = len(self.delivered)
            if after is not None:
                after()
        wait_for(lambda: len(self.delivered) >= first + count, "records", timeout_s=PATIENCE_S)
        return self.delivered[first : first + count]

    def errors(self, count: int, after: Callable[[], object] | None = None) -> list[str | None]:
        """How these end."""
        return [each.error for each in self.deliveries(count, after)]

    def cut(self, act: Callable[[], object]) -> None:
        """`act`, and wait until the producer has lost its connection to the leader."""
        wait_for(lambda: LEADER in self.links, "the producer's statistics")
        _, before = self.links[LEADER]
        act()
        wait_for(lambda: self.links[LEADER][1] > before, "the end of a connection")

    def _produce(self) -> None:
        for number in itertools.count():
            if self.end.is_set():
                break
            with self.between:
                self.delivered.append(self._delivered(f"order {number}".encode()))
            self.producer.poll(0)
            time.sleep(PAUSE_S)

    def _delivered(self, value: bytes) -> Delivery:
        began, outcome = time.monotonic(), list[KafkaError | None]()

        def over(error: KafkaError | None, _: Message) -> None:
            outcome.append(error)

        try:
            self.producer.produce(self.topic, value, on_delivery=over)
            self.producer.flush()
        except KafkaException as refused:  # librdkafka remembers some errors of a topic
            outcome.append(refused.args[0])
        (error,) = outcome
        return Delivery(value, None if error is None else error.name(), time.monotonic() - began)

    def _consume(self) -> None:
        own = {"client.id": BILLING, "group.id": BILLING, "auto.offset.reset": "earliest"}
        consumer = Consumer({**COMMON, "bootstrap.servers": self.bootstrap, **own})
        consumer.subscribe([self.topic])
        while not self.end.is_set():
            message = consumer.poll(0.2)
            if message is not None and not message.error():
                self.read.append(message.value())
        consumer.close()

    def _stats(self, text: str) -> None:
        """Connections made and lost, by node id."""
        brokers = json.loads(text)["brokers"].values()
        self.links = {each["nodeid"]: (each["connects"], each["disconnects"]) for each in brokers}


@contextmanager
def shop_behind_klamm(kafka: Cluster, log: Path, *options: str) -> Iterator[tuple[Klamm, Shop]]:
    """A klamm, and a shop that produces and reads through it when the context begins."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    topics.create(kafka.bootstrap(), topic, [[LEADER]])
    with klamm_in_front_of(kafka.bootstrap(), "127.0.0.1", log, *options) as klamm:
        shop = Shop(klamm.bootstrap, topic)
        for thread in shop.threads:
            thread.start()
        try:
            wait_for(lambda: shop.read, "the first record read", timeout_s=PATIENCE_S)
            yield klamm, shop
        finally:
            shop.end.set()
            for thread in shop.threads:
                thread.join(PATIENCE_S)
                assert not thread.is_alive()
            shop.producer.close()  # else it connects to the next klamm that has these ports


@contextmanager
def probing(bootstrap: str) -> Iterator[Callable[[str], Future[ClusterMetadata]]]:
    """A client that has its connection, and asks about a topic then."""
    client = AdminClient({**COMMON, "bootstrap.servers": bootstrap, "client.id": PROBE})
    for _ in range(2):  # the second time on a connection that stays: the first one was for the bootstrap
        client.list_topics(timeout=PATIENCE_S)
    with ThreadPoolExecutor(1) as thread:
        yield lambda topic: thread.submit(client.list_topics, topic, PATIENCE_S)


def leader(seen: ClusterMetadata, topic: str) -> int:
    """Of the topic's partition, as a client was told."""
    return int(seen.topics[topic].partitions[0].leader)
