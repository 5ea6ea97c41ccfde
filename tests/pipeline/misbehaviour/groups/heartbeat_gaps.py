"""Heartbeats as seldom as the client permits: heartbeat.interval.ms is little below session.timeout.ms, so
that one that is late costs the membership.
"""

import time

from confluent_kafka import Consumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consume, consumer_settings, fill, until

CLIENT_ID = "heartbeat-gaps"
EXPECTED = {"heartbeat_gaps"}
PATIENCE_S = 30  # until it is a member


def run(bootstrap: str, seconds: float) -> None:
    _consume(bootstrap, seconds, heartbeat_ms=4300)


def cured(bootstrap: str, seconds: float) -> None:
    _consume(bootstrap, seconds, heartbeat_ms=2000)


def _consume(bootstrap: str, seconds: float, heartbeat_ms: int) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    fill(bootstrap, CLIENT_ID, CLIENT_ID, count=200)
    own = consumer_settings(
        bootstrap,
        CLIENT_ID,
        session_timeout_ms=6000,
        heartbeat_interval_ms=heartbeat_ms,
        auto_commit_interval_ms=60_000,
    )
    consumer = Consumer(own)
    consumer.subscribe([CLIENT_ID])
    begin = until(PATIENCE_S)
    while time.monotonic() < begin and not consumer.assignment():
        consumer.poll(0.1)
    consume(consumer, until(seconds))
