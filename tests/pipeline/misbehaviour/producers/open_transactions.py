"""Open transactions: a slow service is called between begin and commit.

One worker commits just in time, again and again; two are too late: the coordinator has aborted what they did.
"""

import threading
import time
from contextlib import suppress

from confluent_kafka import KafkaException, Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy, order

CLIENT_ID = "open-transactions"
EXPECTED = {"open_transactions", "fenced_producers"}
TIMEOUT_MS = 5000  # coordinators look every 10 s for what is beyond it
WORKERS = (("quick", 3.5), ("slow", 16.0), ("slow", 16.0))  # and how long a call takes, in s


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, calls_within=True)


def cured(bootstrap: str, seconds: float) -> None:
    """The service is called before a transaction begins."""
    _produce(bootstrap, seconds, calls_within=False)


def _produce(bootstrap: str, seconds: float, calls_within: bool) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    end = time.monotonic() + seconds
    work = [(bootstrap, end, number, *worker, calls_within) for number, worker in enumerate(WORKERS)]
    threads = [threading.Thread(target=_worker, args=arguments) for arguments in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _worker(bootstrap: str, end: float, number: int, name: str, call_s: float, calls_within: bool) -> None:
    while time.monotonic() < end:
        own = {"transactional.id": f"{CLIENT_ID}-{number}", "transaction.timeout.ms": TIMEOUT_MS}
        producer = Producer(healthy(bootstrap, f"{CLIENT_ID}-{name}") | own)
        with suppress(KafkaException):  # too late: what it had is gone, it begins anew
            _work(producer, end, call_s, calls_within)


def _work(producer: Producer, end: float, call_s: float, calls_within: bool) -> None:
    producer.init_transactions(TIMEOUT_S)
    while time.monotonic() < end:
        if not calls_within:
            _call(end, call_s)
        producer.begin_transaction()
        for index in range(50):
            producer.produce(CLIENT_ID, order(index))
        producer.flush(TIMEOUT_S)
        if calls_within:
            _call(end, call_s)
        producer.commit_transaction(TIMEOUT_S)


def _call(end: float, call_s: float) -> None:
    time.sleep(max(0.0, min(call_s, end - time.monotonic())))
