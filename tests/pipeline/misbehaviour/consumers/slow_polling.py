"""Work on a record takes longer than max.poll.interval.ms: the client leaves its group, and joins again with
the next poll, in a classic group and in one of KIP-848. A third client's work takes nearly as long as it may.
"""

import threading
import time
from typing import Any

from confluent_kafka import Consumer
from kafka import KafkaConsumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consume, consumer_settings, producer, send, until

CLIENT_ID = "slow-polling"
EXPECTED = {"slow_polling", "consumer_lag"}  # it reads 1 record in 7 s of 20 a second
KIP_848 = f"{CLIENT_ID}-kip-848"
NEARLY = f"{CLIENT_ID}-nearly"
SESSION_MS = 6000
MAX_POLL_INTERVAL_MS = 6000
EXCEEDING_S, NEAR_S = 7.2, 4.5
PATIENCE_S = 30  # until the first record comes


def exceed(bootstrap: str, seconds: float, poll_ms: int, client_id: str, **settings: Any) -> None:
    """With librdkafka."""
    own = consumer_settings(bootstrap, client_id, max_poll_interval_ms=poll_ms, **settings)
    consumer = Consumer(own)
    consumer.subscribe([CLIENT_ID])
    end, left = until(seconds + PATIENCE_S), max(3, round(seconds / EXCEEDING_S))
    while time.monotonic() < end and left:
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            time.sleep(EXCEEDING_S)
            left -= 1
    consume(consumer, until(3))


def exceed_classic(bootstrap: str, seconds: float, poll_ms: int) -> None:
    exceed(bootstrap, seconds, poll_ms, CLIENT_ID, session_timeout_ms=SESSION_MS)


def exceed_kip_848(bootstrap: str, seconds: float, poll_ms: int) -> None:
    exceed(bootstrap, seconds, poll_ms, KIP_848, group_protocol="consumer")


def come_near(bootstrap: str, seconds: float, poll_ms: int) -> None:
    """With kafka-python, which asks for more only when it is polled, as Java does."""
    consumer = KafkaConsumer(
        CLIENT_ID,
        bootstrap_servers=bootstrap,
        client_id=NEARLY,
        group_id=NEARLY,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=SESSION_MS // 3,
        max_poll_interval_ms=poll_ms,
    )
    end, left = until(seconds + PATIENCE_S), max(5, round(seconds / NEAR_S))
    while time.monotonic() < end and left:
        if consumer.poll(timeout_ms=500):
            time.sleep(NEAR_S)
            left -= 1
    consumer.close()


def run(bootstrap: str, seconds: float) -> None:
    _consume(bootstrap, seconds, MAX_POLL_INTERVAL_MS)


def cured(bootstrap: str, seconds: float) -> None:
    """The longer it may work, the longer a client that hangs keeps its partitions."""
    _consume(bootstrap, seconds, 60_000)


def _consume(bootstrap: str, seconds: float, poll_ms: int) -> None:
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    kinds = exceed_classic, exceed_kip_848, come_near
    workers = [threading.Thread(target=kind, args=(bootstrap, seconds, poll_ms)) for kind in kinds]
    for worker in workers:
        worker.start()
    sender, sent = producer(bootstrap, CLIENT_ID), 0
    while any(worker.is_alive() for worker in workers):
        send(sender, CLIENT_ID, 20, first=sent)
        sender.flush(30)
        sent += 20
        time.sleep(1)
