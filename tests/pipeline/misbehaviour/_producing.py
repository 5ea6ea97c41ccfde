"""How misbehaving producers begin: librdkafka set as it should be, values that compress, a steady pace."""

import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Producer

TIMEOUT_S = 30.0

ENOUGH = 0.7  # of what was to be done
PATIENCE = 1.5  # times the seconds that were given


def healthy(bootstrap: str, client_id: str) -> dict[str, Any]:
    """Settings of a librdkafka producer with which nothing is wrong."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "compression.type": "lz4",
        "enable.idempotence": True,
        "linger.ms": 200,
    }


def paced(seconds: float, each_s: float, *producers: Producer) -> Iterator[int]:
    """0, 1, 2, ... every `each_s`, for `seconds`, each when the producers have delivered what they had.

    What is late comes at once, what is too late never; but on a starved machine it goes on until most was
    done.
    """
    began = time.monotonic()
    wanted = round(seconds / each_s)
    for index in range(wanted):
        time.sleep(max(0.0, began + index * each_s - time.monotonic()))
        late_s = time.monotonic() - began - seconds
        if late_s > 0 and (index >= ENOUGH * wanted or late_s > PATIENCE * seconds):
            return
        yield index
        for producer in producers:
            producer.flush(TIMEOUT_S)


def order(index: int, notes: int = 30) -> bytes:
    """A value that compresses: some 50 bytes, and five for each of the notes."""
    return f'{{"order": {index}, "customer": {index % 500}, "notes": "{"none " * notes}"}}'.encode()
