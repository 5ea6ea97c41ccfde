"""librdkafka's mock cluster of three brokers, in this process."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer


@contextmanager
def mock_cluster() -> Iterator[str]:
    """Where it is: "host:port", several with commas."""
    keeper = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 3, "log_level": 2})
    brokers = keeper.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del keeper
