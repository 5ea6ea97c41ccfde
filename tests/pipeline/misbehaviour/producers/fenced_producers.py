"""Fenced producers: two instances of a deployment have one `transactional.id`, and fence each other."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from confluent_kafka import KafkaException, Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy, order

CLIENT_ID = "fenced-producers"
EXPECTED = {"fenced_producers", "connection_churn"}
RESTART_S = 0.5  # the supervisor's


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, [CLIENT_ID, CLIENT_ID])


def cured(bootstrap: str, seconds: float) -> None:
    """Each instance has an id of its own."""
    _produce(bootstrap, seconds, [f"{CLIENT_ID}-0", f"{CLIENT_ID}-1"])


def _produce(bootstrap: str, seconds: float, transactional_ids: Sequence[str]) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    end = time.monotonic() + seconds
    instances = [(bootstrap, end, number, name) for number, name in enumerate(transactional_ids)]
    threads = [threading.Thread(target=_instance, args=instance) for instance in instances]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _instance(bootstrap: str, end: float, number: int, transactional_id: str) -> None:
    time.sleep(number * RESTART_S)
    while time.monotonic() < end:
        with suppress(KafkaException):  # it ends, and is started again
            _work(bootstrap, end, number, transactional_id)
        time.sleep(RESTART_S)


def _work(bootstrap: str, end: float, number: int, transactional_id: str) -> None:
    settings = healthy(bootstrap, f"{CLIENT_ID}-{number}") | {"transactional.id": transactional_id}
    producer = Producer(settings)
    producer.init_transactions(TIMEOUT_S)
    while time.monotonic() < end:
        producer.begin_transaction()
        for index in range(50):
            producer.produce(CLIENT_ID, order(index))
        producer.commit_transaction(TIMEOUT_S)
        time.sleep(0.5)
