"""A producer with yesterday's password, which tries and tries again."""

from confluent_kafka import Producer

from tests.brokers.kraft import USERS
from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "authentication-failures"
EXPECTED = {"authentication_failures"}
LISTENER = "SASL_PLAINTEXT"
RECORDS = 50  # of a piece of work
CREDENTIALS = {
    "security.protocol": LISTENER,
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "alice",
    "sasl.password": "her password before it was changed",
}


def cured(bootstrap: str, seconds: float) -> None:
    """Today's password."""
    own = CREDENTIALS | {"sasl.password": USERS["alice"]}
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, credentials=own)
    producer = Producer(healthy(bootstrap, CLIENT_ID) | own)
    for index in paced(seconds, 0.5, producer):
        for number in range(RECORDS):
            producer.produce(CLIENT_ID, order(index * RECORDS + number))


def run(bootstrap: str, seconds: float) -> None:
    backoff = {"reconnect.backoff.max.ms": 1000, "log_level": 0}
    producer = Producer(healthy(bootstrap, CLIENT_ID) | CREDENTIALS | backoff)
    for _ in paced(seconds, 0.5):
        producer.poll(0)
