"""A producer that gives up its requests before they are answered: its `socket.timeout.ms` is a second, and
what it writes beyond its quota makes it wait for longer.
"""

import os
from contextlib import suppress

from confluent_kafka import Producer

from tests.e2e.conversation import ask
from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, paced

CLIENT_ID = "unanswered-requests"
EXPECTED = {"unanswered_requests", "throttled_clients", "retries_and_duplicates", "metadata_storm"}
DIRECT = True
QUOTA_BYTES_S = 20_000.0
IMPATIENT = {
    "socket.timeout.ms": 1000,
    "message.timeout.ms": 5000,
    "queue.buffering.max.messages": 100,
    "log_level": 0,
}


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    limit(os.environ["KLAMM_DIRECT"].split(",")[0])
    producer = Producer(healthy(bootstrap, CLIENT_ID) | IMPATIENT)
    for _ in paced(seconds, 0.05):
        with suppress(BufferError):
            producer.produce(CLIENT_ID, os.urandom(2500) + bytes(2500))
        producer.poll(0)
    producer.purge()
    producer.flush(5)


def limit(broker: str) -> None:
    """producer_byte_rate of this client."""
    host, port = broker.split(":")
    entry = {
        "entity": [{"entity_type": "client-id", "entity_name": CLIENT_ID}],
        "ops": [{"key": "producer_byte_rate", "value": QUOTA_BYTES_S, "remove": False}],
    }
    ask((host, int(port)), "AlterClientQuotas", 1, {"entries": [entry], "validate_only": False})
