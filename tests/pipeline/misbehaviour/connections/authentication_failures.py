"""A producer with yesterday's password, which tries and tries again."""

from confluent_kafka import Producer

from tests.pipeline.misbehaviour._producing import healthy, paced

CLIENT_ID = "authentication-failures"
EXPECTED = {"authentication_failures"}
LISTENER = "SASL_PLAINTEXT"
CREDENTIALS = {
    "security.protocol": LISTENER,
    "sasl.mechanism": "SCRAM-SHA-256",
    "sasl.username": "alice",
    "sasl.password": "her password before it was changed",
}


def run(bootstrap: str, seconds: float) -> None:
    backoff = {"reconnect.backoff.max.ms": 1000, "log_level": 0}
    producer = Producer(healthy(bootstrap, CLIENT_ID) | CREDENTIALS | backoff)
    for _ in paced(seconds, 0.5):
        producer.poll(0)
