"""A producer whose records are requests of their own, so that each answer counts."""

from __future__ import annotations

from confluent_kafka import KafkaError, Producer

COUNT = 20
PATIENCE_S = 16  # a busy machine needs a second for what takes a tenth


def produced(bootstrap: str, topic: str, acks: str = "all") -> tuple[Producer, list[KafkaError | None]]:
    """librdkafka, and the errors of COUNT records that it sent to three partitions without waiting for
    answers.
    """
    told: list[KafkaError | None] = []
    settings = {"bootstrap.servers": bootstrap, "linger.ms": 0, "batch.num.messages": 1, "acks": acks}
    producer = Producer(settings)
    for number in range(COUNT):
        producer.produce(
            topic, str(number), partition=number % 3, on_delivery=lambda error, _: told.append(error)
        )
        producer.poll(0)
    producer.flush(PATIENCE_S)
    return producer, told
