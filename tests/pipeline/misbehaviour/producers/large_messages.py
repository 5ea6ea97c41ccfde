"""Large messages: images in records, with `message.max.bytes` raised in the client, and not in the topic."""

import base64
import random
from collections.abc import Sequence

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, paced

CLIENT_ID = "large-messages"
EXPECTED = {"large_messages"}
IMAGES_KB = (900, 950, 1000, 1800)  # base64 shrinks by a quarter: the last is refused


def run(bootstrap: str, seconds: float) -> None:
    images = [base64.b64encode(random.Random(size).randbytes(size * 768)) for size in IMAGES_KB]
    _produce(bootstrap, seconds, images)


def cured(bootstrap: str, seconds: float) -> None:
    """The images are elsewhere."""
    _produce(bootstrap, seconds, [f"https://images.example/{size}".encode() for size in IMAGES_KB])


def _produce(bootstrap: str, seconds: float, images: Sequence[bytes]) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, config={"max.message.bytes": "1048588"})
    producer = Producer(
        healthy(bootstrap, CLIENT_ID) | {"compression.type": "gzip", "message.max.bytes": 10_000_000}
    )
    for index in paced(seconds, seconds / 12, producer):
        producer.produce(CLIENT_ID, images[index % len(images)])
