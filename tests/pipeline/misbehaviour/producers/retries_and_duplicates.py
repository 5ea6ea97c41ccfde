"""Retries and duplicates: `request.timeout.ms=1`, meant to be a second.

The brokers wait no longer than that for the followers, answer REQUEST_TIMED_OUT for what they have written,
and the producer sends it again.
"""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy, order, paced

CLIENT_ID = "retries-and-duplicates"
EXPECTED = {"retries_and_duplicates", "short_request_timeouts"}


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, timeout_ms=1)


def cured(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, timeout_ms=30_000)


def _produce(bootstrap: str, seconds: float, timeout_ms: int) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producers = [
        Producer(
            healthy(bootstrap, f"{CLIENT_ID}-{name}")
            | {"request.timeout.ms": timeout_ms, "enable.idempotence": idempotent}
        )
        for name, idempotent in (("idempotent", True), ("plain", False))
    ]
    for tick in paced(seconds, 0.2):
        for producer in producers:
            for index in range(20):
                producer.produce(CLIENT_ID, order(tick * 20 + index))
            producer.poll(0)
    for producer in producers:
        producer.flush(1)
        producer.purge()  # drops records that are sent again and again
        producer.flush(TIMEOUT_S)
