"""Work on a record takes longer than max.poll.interval.ms: the client leaves its group, and joins again with
the next poll. A second client's work takes nearly as long as it may.
"""

import threading
import time

from confluent_kafka import Consumer
from kafka import KafkaConsumer

from tests.pipeline.misbehaviour import _topics
from tests.pipeline.misbehaviour._stock import consumer_settings, producer, send, until

CLIENT_ID = "slow-polling"
EXPECTED = {"slow_polling"}
NEARLY = f"{CLIENT_ID}-nearly"
SESSION_MS = 6000
MAX_POLL_INTERVAL_MS = 6000


def exceed(bootstrap: str, end: float) -> None:
    """With librdkafka."""
    own = {"session_timeout_ms": SESSION_MS, "max_poll_interval_ms": MAX_POLL_INTERVAL_MS}
    consumer = Consumer(consumer_settings(bootstrap, CLIENT_ID, **own))
    consumer.subscribe([CLIENT_ID])
    while time.monotonic() < end:
        message = consumer.poll(1.0)
        if message is not None and not message.error():
            time.sleep(min(MAX_POLL_INTERVAL_MS / 1000 + 1, max(0.0, end - time.monotonic())))
    consumer.close()


def come_near(bootstrap: str, end: float) -> None:
    """With kafka-python, which asks for more only when it is polled, as Java does."""
    consumer = KafkaConsumer(
        CLIENT_ID,
        bootstrap_servers=bootstrap,
        client_id=NEARLY,
        group_id=NEARLY,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=SESSION_MS // 3,
        max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
    )
    while time.monotonic() < end:
        if consumer.poll(timeout_ms=500):
            time.sleep(min(MAX_POLL_INTERVAL_MS / 1000 * 0.75, max(0.0, end - time.monotonic())))
    consumer.close()


def run(bootstrap: str, seconds: float) -> None:
    end = until(seconds)
    _topics.create(bootstrap, CLIENT_ID, CLIENT_ID, partitions=1)
    workers = [threading.Thread(target=work, args=(bootstrap, end)) for work in (exceed, come_near)]
    for worker in workers:
        worker.start()
    sender, sent = producer(bootstrap, CLIENT_ID), 0
    while time.monotonic() < end:
        send(sender, CLIENT_ID, 20, first=sent)
        sender.flush(30)
        sent += 20
        time.sleep(1)
    for worker in workers:
        worker.join()
