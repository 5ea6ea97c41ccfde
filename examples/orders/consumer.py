"""The billing side: every order is billed, and none twice."""

import json
import time

from confluent_kafka import Consumer

TOPIC = "orders"


class Billing:
    """Bills orders. `bootstrap` is "host:port"."""

    def __init__(self, bootstrap: str, group: str = "billing") -> None:
        self.billed: dict[int, str] = {}
        self.consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": "billing",
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self.consumer.subscribe([TOPIC])

    def bill(self, count: int, timeout_s: float = 20.0) -> None:
        """Until `count` orders are billed. TimeoutError says how many are."""
        ends = time.monotonic() + timeout_s
        while len(self.billed) < count:
            if time.monotonic() > ends:
                raise TimeoutError(f"{len(self.billed)} of {count} orders billed in {timeout_s:g} s")
            message = self.consumer.poll(0.2)
            value = message.value() if message is not None and message.error() is None else None
            if value is not None:
                order = json.loads(value)
                self.billed.setdefault(order["number"], order["item"])
                self.consumer.commit(message, asynchronous=False)

    def close(self) -> None:
        """Leave the group."""
        self.consumer.close()
