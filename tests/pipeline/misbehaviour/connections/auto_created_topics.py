"""A producer that makes up its topics' names from what it is given: the brokers make them all."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "auto-created-topics"
EXPECTED = {"auto_created_topics"}
TENANTS = ("red", "green", "blue")
RECORDS = 50  # of a piece of work


def cured(bootstrap: str, seconds: float) -> None:
    """The topics are made first."""
    _topics.create(bootstrap, CLIENT_ID, *(f"{CLIENT_ID}-{tenant}" for tenant in TENANTS))
    run(bootstrap, seconds)


def run(bootstrap: str, seconds: float) -> None:
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    for index in paced(seconds, 0.2):
        for number in range(RECORDS):
            producer.produce(f"{CLIENT_ID}-{TENANTS[index % 3]}", order(index * RECORDS + number))
        producer.poll(0)
    producer.flush(30)
