"""The shop's side: an order is placed when the cluster has it."""

import json
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

TOPIC = "orders"


class Shop:
    """Places orders. `bootstrap` is "host:port"."""

    def __init__(self, bootstrap: str, timeout_s: float = 10.0) -> None:
        self.timeout_s = timeout_s
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "shop",
                "enable.idempotence": True,  # a try that is made again makes no second order
                "message.timeout.ms": int(timeout_s * 1000),
            }
        )

    def place(self, number: int, item: str) -> int:
        """One order; its offset. Raises KafkaException when it is not sure that the cluster has it."""
        outcome: list[tuple[KafkaError | None, Message]] = []
        value = json.dumps({"number": number, "item": item})
        self.producer.produce(TOPIC, value, key=str(number), on_delivery=lambda *told: outcome.append(told))
        self.producer.flush(self.timeout_s + 5)
        if not outcome:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        error, message = outcome[0]
        if error is not None:
            raise KafkaException(error)
        offset: Any = message.offset()
        return int(offset)
