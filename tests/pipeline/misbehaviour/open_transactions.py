"""Open transactions: a slow service is called between begin and commit.

Two workers with a timeout of 3 s: one commits just in time, again and again; the other is too late, its
transactions are aborted by the coordinator, and it begins anew.
"""

import threading
import time
from contextlib import suppress

from confluent_kafka import KafkaException, Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy, order

CLIENT_ID = "open-transactions"
EXPECTED = {"open_transactions"}
CALL_S = {"quick": 2.5, "slow": 14.0, "slower": 15.0}  # a coordinator looks for timeouts every 10 s


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=_worker, args=(bootstrap, end, name)) for name in CALL_S]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _worker(bootstrap: str, end: float, name: str) -> None:
    while time.monotonic() < end:
        with suppress(KafkaException):  # too late: what it had is gone, it begins anew
            _work(bootstrap, end, name)


def _work(bootstrap: str, end: float, name: str) -> None:
    own = {"transactional.id": f"{CLIENT_ID}-{name}", "transaction.timeout.ms": 3000}
    producer = Producer(healthy(bootstrap, f"{CLIENT_ID}-{name}") | own)
    producer.init_transactions(TIMEOUT_S)
    while time.monotonic() < end:
        producer.begin_transaction()
        for index in range(50):
            producer.produce(CLIENT_ID, order(index))
        producer.flush(TIMEOUT_S)
        time.sleep(CALL_S[name])
        producer.commit_transaction(TIMEOUT_S)
