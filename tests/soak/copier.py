"""Copies records in transactions, offsets included: python copier.py BOOTSTRAP NAME SOURCE TARGET

Each copy says where its source stands, as `partition/offset`. One transaction in ten is given up, and its
records say `aborted`: nobody may read them. SIGTERM ends it. What goes wrong is written to standard error,
and it begins anew with the same transactional id. It ends by itself, with 1, where a call of librdkafka does
not return: librdkafka 2.16 may wait for ever for a coordinator that went away (its issues 5456 and 5511).
"""

from __future__ import annotations

import faulthandler
import random
import signal
import sys
import traceback

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition

GROUP = "copiers"
ABORTED = "aborted"
GIVEN_UP = 0.1  # of the transactions
MOST = 50  # records of a transaction
WAIT_S = 30.0  # for an answer; then it begins anew
STUCK_S = 60.0  # in a transaction, beyond what librdkafka promises


class Copier:
    def __init__(self, bootstrap: str, name: str, source: str, target: str) -> None:
        self.bootstrap, self.name, self.source, self.target = bootstrap, name, source, target
        self.random = random.Random(name)
        self.is_over = False

    def end(self, *_: object) -> None:
        self.is_over = True

    def run(self) -> None:
        while not self.is_over:
            try:
                self._copy()
            except KafkaException:
                faulthandler.cancel_dump_traceback_later()
                traceback.print_exc()

    def _copy(self) -> None:
        """Raises KafkaException for what a new producer and a new consumer have to mend."""
        of_both = {"bootstrap.servers": self.bootstrap, "client.id": self.name, "log_level": 0}
        producer = Producer(
            {**of_both, "transactional.id": self.name, "transaction.timeout.ms": int(WAIT_S * 1000)}
        )
        producer.init_transactions(WAIT_S)
        consumer = Consumer(
            {
                **of_both,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 10_000,
            }
        )
        consumer.subscribe([self.source])
        try:
            while not self.is_over:
                read = [message for message in consumer.consume(MOST, 0.5) if message.error() is None]
                if read:
                    faulthandler.dump_traceback_later(STUCK_S, exit=True)
                    self._transaction(producer, consumer, read)
                    faulthandler.cancel_dump_traceback_later()
        finally:
            consumer.close()

    def _transaction(self, producer: Producer, consumer: Consumer, read: list[Message]) -> None:
        is_given_up = self.random.random() < GIVEN_UP
        producer.begin_transaction()
        for message in read:
            where = ABORTED if is_given_up else f"{message.partition()}/{message.offset()}"
            producer.produce(self.target, where.encode())
        if is_given_up:
            producer.flush(WAIT_S)
            producer.abort_transaction(WAIT_S)
            _rewind(consumer)
            return
        places = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), WAIT_S)
        producer.commit_transaction(WAIT_S)


def _rewind(consumer: Consumer) -> None:
    """To what is committed."""
    for place in consumer.committed(consumer.assignment(), WAIT_S):
        offset = place.offset if place.offset >= 0 else OFFSET_BEGINNING
        consumer.seek(TopicPartition(place.topic, place.partition, offset))


if __name__ == "__main__":
    copier = Copier(*sys.argv[1:])
    signal.signal(signal.SIGTERM, copier.end)
    copier.run()
