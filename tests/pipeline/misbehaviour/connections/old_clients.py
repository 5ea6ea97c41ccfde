"""Services with a pinned `api_version`: of a Kafka of 2017, which is still answered, and of one of 2016."""

from contextlib import closing, suppress
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import order, paced

CLIENT_ID = "old-clients"
EXPECTED = {"old_clients"}
RECORDS = 50  # of a piece of work


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    refused(bootstrap)
    produce(bootstrap, seconds, api_version=(0, 11))


def cured(bootstrap: str, seconds: float) -> None:
    """Without a version of brokers that are gone."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    produce(bootstrap, seconds)


def produce(bootstrap: str, seconds: float, **own: Any) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        client_id=f"{CLIENT_ID}-2017",
        acks="all",
        enable_idempotence=True,
        compression_type="gzip",
        linger_ms=100,
        **own,
    )
    for index in paced(seconds, 0.2):
        for number in range(RECORDS):
            producer.send(CLIENT_ID, order(index * RECORDS + number))
    producer.close(30)


def refused(bootstrap: str) -> None:
    """A look at the topic by the older one: the broker closes the connection at its first Fetch."""
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=f"{CLIENT_ID}-2016",
        group_id=None,
        api_version=(0, 10, 1),
        auto_offset_reset="earliest",
        reconnect_backoff_ms=500,
    )
    with closing(consumer), suppress(KafkaError):
        consumer.assign([TopicPartition(CLIENT_ID, 0)])
        consumer.poll(timeout_ms=1500)  # more would be a storm: it connects again at once, and again
