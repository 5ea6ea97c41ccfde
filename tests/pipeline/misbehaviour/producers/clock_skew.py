"""Clock skew: a host half an hour ahead, one whose local time passes for UTC, one with seconds for ms."""

import time
from collections.abc import Callable, Mapping

from confluent_kafka import Producer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._producing import healthy, order, paced

CLIENT_ID = "clock-skew"
EXPECTED = {"clock_skew"}
CLOCKS: dict[str, Callable[[], float]] = {
    "ahead": lambda: (time.time() + 1800) * 1000,
    "behind": lambda: (time.time() - 7200) * 1000,
    "seconds": lambda: time.time(),
}


def run(bootstrap: str, seconds: float) -> None:
    _produce(bootstrap, seconds, CLOCKS)


def cured(bootstrap: str, seconds: float) -> None:
    """Clocks that are right, in ms since 1970."""
    _produce(bootstrap, seconds, dict.fromkeys(CLOCKS, lambda: time.time() * 1000))


def _produce(bootstrap: str, seconds: float, clocks: Mapping[str, Callable[[], float]]) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID)
    producers = {name: Producer(healthy(bootstrap, f"{CLIENT_ID}-{name}")) for name in clocks}
    for index in paced(seconds, 0.2, *producers.values()):
        for name, producer in producers.items():
            for _ in range(5):
                producer.produce(CLIENT_ID, order(index), timestamp=int(clocks[name]()))
