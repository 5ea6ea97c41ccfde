"""Hot partitions: the key is the customer's country, and most customers live in one."""

import os

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, paced

CLIENT_ID = "hot-partitions"
EXPECTED = {"hot_partitions", "key_skew"}  # the latter where its keys are in the capture
COUNTRIES = ["us"] * 16 + ["de", "fr", "jp", "br"]


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=6)
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    for _ in paced(seconds, 0.2, producer):
        for index in range(40):
            value = os.urandom(600) + bytes(300)
            producer.produce(CLIENT_ID, value, key=COUNTRIES[index % len(COUNTRIES)])
