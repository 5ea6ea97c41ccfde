"""A service with a producer whose `transactional.id` has a UUID in it, made for each order."""

import uuid

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy, order, paced

CLIENT_ID = "transactional-id-churn"
EXPECTED = {"transactional_id_churn", "connection_churn"}
RECORDS = 50  # of an order


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    for _ in paced(seconds, 1.0):
        producer = _begun(bootstrap, f"order-{uuid.uuid4()}")
        _send(producer)
        del producer


def cured(bootstrap: str, seconds: float) -> None:
    """One producer, whose id is that of the instance."""
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producer = _begun(bootstrap, f"{CLIENT_ID}-0")
    for _ in paced(seconds, 1.0):
        _send(producer)


def _begun(bootstrap: str, transactional_id: str) -> Producer:
    producer = Producer(healthy(bootstrap, CLIENT_ID) | {"transactional.id": transactional_id})
    producer.init_transactions(TIMEOUT_S)
    return producer


def _send(producer: Producer) -> None:
    producer.begin_transaction()
    for number in range(RECORDS):
        producer.produce(CLIENT_ID, order(number))
    producer.commit_transaction(TIMEOUT_S)
