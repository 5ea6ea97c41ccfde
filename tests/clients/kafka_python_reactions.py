"""kafka-python 3 taking faults; drivers.py says how it is called and what it prints."""

import time
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from reactions import Options, Rebalances, failure, is_late, run, sasl, say, since


def _settings(bootstrap: str, options: Options) -> dict[str, Any]:
    return {
        "bootstrap_servers": bootstrap.split(","),
        "client_id": "kafka-python-reactions",
        "bootstrap_timeout_ms": options["timeout_ms"] // 2,
        **sasl(options),
    }


def _producer(bootstrap: str, options: Options, **settings: Any) -> KafkaProducer | None:
    """A producer; None, and why, where it cannot be made."""
    begin, limit_ms = time.monotonic(), options["timeout_ms"]
    try:
        return KafkaProducer(
            **_settings(bootstrap, options),
            request_timeout_ms=limit_ms // 2,
            delivery_timeout_ms=limit_ms,
            max_block_ms=limit_ms // 2,
            **settings,
        )
    except KafkaError as error:
        failure("start", error, begin)
        return None


def _send(producer: KafkaProducer, topic: str, index: int, wait_s: float) -> bool:
    """Send one record, and wait for it; whether it arrived."""
    begin = time.monotonic()
    try:
        sent = producer.send(topic, str(index).encode()).get(wait_s)
    except KafkaError as error:
        failure("produce", error, begin, i=index)
        return False
    say("produced", i=index, partition=sent.partition, offset=sent.offset, ms=since(begin))
    return True


def produce(bootstrap: str, topic: str, options: Options) -> None:
    """Send `n` records, one after another."""
    acks = options["acks"] if options["acks"] == "all" else int(options["acks"])
    producer = _producer(bootstrap, options, acks=acks, enable_idempotence=options["idempotent"])
    if producer is not None:
        for index in range(options["n"]):
            _send(producer, topic, index, options["timeout_ms"] / 1000)


def transaction(bootstrap: str, topic: str, options: Options) -> None:
    """Send `n` records in a transaction, and abort it where something fails."""
    limit_ms = options["timeout_ms"]
    producer = _producer(bootstrap, options, transactional_id=options["id"], transaction_timeout_ms=limit_ms)
    if producer is None:
        return
    begin, where = time.monotonic(), "init"
    try:
        producer.init_transactions()
        say("initialised", ms=since(begin))
        producer.begin_transaction()
        where = "produce"
        for index in range(options["n"]):
            if not _send(producer, topic, index, limit_ms / 1000):
                _abort(producer)
                return
        where = "commit"
        producer.commit_transaction()
        say("committed", ms=since(begin))
    except KafkaError as error:
        abortable = where != "init" and _abort(producer)
        failure(where, error, begin, fatal=not abortable, abortable=abortable)


def _abort(producer: KafkaProducer) -> bool:
    """Whether the transaction could be aborted."""
    begin = time.monotonic()
    try:
        producer.abort_transaction()
    except KafkaError as error:
        failure("abort", error, begin, fatal=True, abortable=False)
        return False
    say("aborted", ms=since(begin))
    return True


class _Rebalances(Rebalances, ConsumerRebalanceListener):
    pass


def consume(bootstrap: str, topic: str, options: Options) -> None:
    """Read `n` records in a classic group, and commit."""
    begin, count, errors, committed = time.monotonic(), 0, 0, False
    try:
        consumer = KafkaConsumer(
            **_settings(bootstrap, options),
            group_id=options["group"],
            auto_offset_reset=options["reset"],
            isolation_level=options["isolation"],
            enable_auto_commit=False,
            heartbeat_interval_ms=300,
            session_timeout_ms=6000,
        )
    except KafkaError as error:
        failure("start", error, begin)
        return
    consumer.subscribe([topic], listener=_Rebalances(begin))
    # Not short: a poll that ends amid a rebalance may lose the assignment (kafka-python 3.0.12).
    patience_ms = min(1000, options["timeout_ms"] // 4)
    while not (committed or (is_late(options) and not count)) and errors < options["errors"]:
        where = "poll"
        try:
            for each in [each for batch in consumer.poll(patience_ms).values() for each in batch]:
                count += 1
                value = each.value.decode()
                say("record", partition=each.partition, offset=each.offset, value=value, ms=since(begin))
            if not count or (count < options["n"] and not is_late(options)):
                continue
            where = "commit"
            consumer.commit()
            committed = True
            say("committed", ms=since(begin))
        except KafkaError as error:
            errors += 1
            failure(where, error, begin)
    consumer.close()


def admin(bootstrap: str, topic: str, options: Options) -> None:
    """Create, describe or delete the topic."""
    begin = time.monotonic()
    try:
        client = KafkaAdminClient(**_settings(bootstrap, options))
        if options["op"] == "create":
            client.create_topics([NewTopic(topic, options["partitions"], options["replicas"])])
            say("created", ms=since(begin))
        elif options["op"] == "delete":
            client.delete_topics([topic])
            say("deleted", ms=since(begin))
        else:
            (found,) = client.describe_topics([topic])
            partitions = sorted(found["partitions"], key=lambda each: int(each["partition_index"]))
            say("described", leaders=[each["leader_id"] for each in partitions], ms=since(begin))
    except KafkaError as error:
        failure(options["op"], error, begin)


if __name__ == "__main__":
    run({"produce": produce, "transaction": transaction, "consume": consume, "admin": admin})
