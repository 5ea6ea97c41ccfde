"""Throttled clients: a quota of 20 kB/s for a producer that has several times as much to send."""

import random
import time

from confluent_kafka import Producer

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import read_response_header, request_frame, response_header_version
from tests.brokers.wire import call
from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import TIMEOUT_S, healthy

CLIENT_ID = "throttled-clients"
EXPECTED = {"throttled_clients"}
QUOTA = 20_000.0  # bytes/s


def run(bootstrap: str, seconds: float) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    _limit(bootstrap)
    producer = Producer(healthy(bootstrap, CLIENT_ID))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(15):
            producer.produce(CLIENT_ID, random.randbytes(400).hex())
        producer.flush(TIMEOUT_S)


def _limit(bootstrap: str) -> None:
    """As kafka-configs.sh does it; the Python libraries can not."""
    host, port = bootstrap.rsplit(":", 1)
    entity = [{"entity_type": "client-id", "entity_name": CLIENT_ID}]
    ops = [{"key": "producer_byte_rate", "value": QUOTA, "remove": False}]
    api, values = API["AlterClientQuotas"], {"entries": [{"entity": entity, "ops": ops}]}
    frame = request_frame(api, 1, 1, f"{CLIENT_ID}-admin", encode(values, "AlterClientQuotas", 1, "request"))
    answer = call((host, int(port)), frame[4:], timeout_s=60)
    header = read_response_header(answer, response_header_version(api, 1))
    entries = decode(answer[header.size :], "AlterClientQuotas", 1, "response")["entries"]
    if entries[0]["error_code"]:
        raise RuntimeError(f"no quota: {entries}")
