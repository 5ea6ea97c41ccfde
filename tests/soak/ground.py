"""Three brokers, klamm with two workers in front of them, and clients that work through it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from klamm.client.sync import Klamm as Admin
from tests.brokers.kraft import SOON_MISSED, Cluster, kraft_cluster
from tests.brokers.processes import Process, children, wait_for
from tests.clients.records import fingerprint
from tests.e2e import topics
from tests.e2e.clusters.handing_over import Klamms
from tests.soak.clients import CONSUMERS, COPIES, ORDERS, PARTITIONS, PRODUCERS, Clients
from tests.soak.judge import Stored

WORKERS = 2
SETTINGS = {**SOON_MISSED, "min.insync.replicas": "2"}  # what is acknowledged is on two brokers
GOES_ON = 20  # records that have to be written after a fault
READ_S = 120  # for a topic, whole
ENDS_S = 5.0


class Ground:
    """Brokers, klamm and clients, which are asked, killed and replaced. Brokers are asked without klamm."""

    def __init__(self, kafka: Cluster, klamms: Klamms, clients: Clients, folder: Path) -> None:
        self.kafka, self.klamms, self.clients, self.folder = kafka, klamms, clients, folder

    @property
    def klamm(self) -> Process:
        return self.klamms.running[-1]

    @property
    def workers(self) -> list[int]:
        """Their process ids."""
        return children(self.klamm.child.pid)

    @property
    def admin(self) -> Admin:
        return Admin(self.klamms.admin)

    def written(self, topic: str = ORDERS) -> int:
        """Records in the topic now; 0 while a partition has no leader."""
        with self._reader() as reader:
            try:
                ends = [reader.get_watermark_offsets(TopicPartition(topic, one), ENDS_S) for one in _all()]
            except KafkaException:
                return 0
        return sum(high for _, high in ends)

    def wait_until_all_work(self) -> None:
        """Some clients give up where they meet no broker when they begin."""
        groups = [name for name, (_, own) in CONSUMERS.items() if own["do"] == "consume"]
        bootstrap = self.kafka.bootstrap()
        for group in groups:
            wait_for(lambda: topics.assigned(bootstrap, group), f"members of {group}", [self.klamm])  # noqa: B023
        wait_for(lambda: self.written() >= len(PRODUCERS) * GOES_ON, "records", [self.klamm])
        wait_for(lambda: self.written(COPIES) > 0, "copies", [self.klamm])

    def wait_until_it_goes_on(self) -> None:
        """TimeoutError where clients write nothing more, although everything is as it was."""
        before = wait_for(self.written, "leaders of all partitions")
        wait_for(
            lambda: not self.clients.produce or self.written() >= before + GOES_ON,
            f"{GOES_ON} records after a fault",
            [self.klamm],
        )

    def stored(self, topic: str) -> list[Stored]:
        """The committed records, as brokers have them."""
        found = []
        with self._reader() as reader:
            for partition in _all():
                end = wait_for(lambda: self._end(reader, topic, partition), f"the end of {topic}")  # noqa: B023
                reader.assign([TopicPartition(topic, partition, 0)])
                found += self._read(reader, topic, end[0])
        return found

    def _end(self, reader: Consumer, topic: str, partition: int) -> tuple[int] | None:
        try:
            return (reader.get_watermark_offsets(TopicPartition(topic, partition), ENDS_S)[1],)
        except KafkaException:
            return None

    def _read(self, reader: Consumer, topic: str, end: int) -> list[Stored]:
        found: list[Stored] = []

        def at_end() -> bool:
            found.extend(
                _record(topic, message) for message in reader.consume(500, 0.5) if not message.error()
            )
            [place] = reader.position(reader.assignment())
            return place.offset >= end  # the last offsets may be those of markers

        wait_for(lambda: end == 0 or at_end(), f"{topic} until offset {end}", timeout_s=READ_S)
        return found

    @contextmanager
    def _reader(self) -> Iterator[Consumer]:
        settings = {"bootstrap.servers": self.kafka.bootstrap(), "group.id": "reader", "log_level": 0}
        reader = Consumer({**settings, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
        try:
            yield reader
        finally:
            reader.close()


def _record(topic: str, message: Any) -> Stored:
    value = message.value()
    if topic == COPIES:
        return Stored(message.partition(), message.offset(), value.decode())
    mark = fingerprint(topic, message.key(), value, message.headers() or [])
    return Stored(message.partition(), message.offset(), mark)


def _all() -> range:
    return range(PARTITIONS)


@contextmanager
def ground(folder: Path, seconds: float) -> Iterator[Ground]:
    """Everything is at work when the context begins. `seconds`: so long producers send."""
    with kraft_cluster(folder, settings=SETTINGS) as kafka:
        for topic in (ORDERS, COPIES):
            topics.create(kafka.bootstrap(), topic, topics.spread(PARTITIONS))
        options = ("--workers", str(WORKERS))
        with Klamms(kafka, folder, *options) as klamms:
            klamm = klamms.start()
            wait_for(klamm.ready, "klamm", [klamm.process])
            clients = Clients(klamms.bootstrap, folder, seconds)
            try:
                yield Ground(kafka, klamms, clients, folder)
            finally:
                clients.stop()
