"""librdkafka (confluent-kafka) taking faults; drivers.py says how it is called and what it prints."""

import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from reactions import Options, done, is_late, partitions_event, run, say, since

from klamm.decoders.error_codes import error_name


def _settings(bootstrap: str, options: Options) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "librdkafka-reactions",
        "error_cb": _client_error,
        "debug": "broker,topic,metadata,cgrp,eos",
    }
    if options["username"]:
        settings |= {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": options["username"],
            "sasl.password": options["password"],
        }
    return settings


def _client_error(error: KafkaError) -> None:
    """An error that the client reports outside of any call. After a wrong password the program ends."""
    if error.code() == KafkaError._AUTHENTICATION:
        _failure("client", error, time.monotonic())
        done()


def _failure(where: str, error: KafkaError, begin: float, **fields: Any) -> None:
    details = {"retriable": error.retriable(), "fatal": error.fatal(), **fields}
    name = error_name(error.code()) if error.code() > 0 else error.name()
    say("error", where=where, error=name, message=error.str(), ms=since(begin), **details)


def _send(producer: Producer, topic: str, index: int) -> KafkaError | None:
    """Send one record, and wait for its report; the error, or None."""
    begin = time.monotonic()
    reports: list[tuple[KafkaError | None, Message]] = []
    try:
        producer.produce(topic, value=str(index), on_delivery=lambda *report: reports.append(report))
        while not reports:
            producer.poll(0.1)
    except KafkaException as refused:
        return _not_sent(refused, index, begin)
    error, message = reports[0]
    if error:
        _failure("produce", error, begin, i=index)
        return error
    say("produced", i=index, partition=message.partition(), offset=message.offset(), ms=since(begin))
    return None


def _not_sent(refused: KafkaException, index: int, begin: float) -> KafkaError:
    error: KafkaError = refused.args[0]
    _failure("produce", error, begin, i=index)
    return error


def produce(bootstrap: str, topic: str, options: Options) -> None:
    """Send `n` records, one after another."""
    producer = Producer(
        _settings(bootstrap, options)
        | {
            "acks": options["acks"],
            "enable.idempotence": options["idempotent"],
            "linger.ms": 0,
            "delivery.timeout.ms": options["timeout_ms"],
        }
    )
    for index in range(options["n"]):
        error = _send(producer, topic, index)
        if error and error.fatal():
            break


def transaction(bootstrap: str, topic: str, options: Options) -> None:
    """Send `n` records in a transaction, and abort it where something fails."""
    producer = Producer(
        _settings(bootstrap, options)
        | {"transactional.id": options["id"], "linger.ms": 0, "transaction.timeout.ms": options["timeout_ms"]}
    )
    begin, where = time.monotonic(), "init"
    try:
        producer.init_transactions(options["timeout_ms"] / 1000)
        say("initialised", ms=since(begin))
        producer.begin_transaction()
        where = "produce"
        for index in range(options["n"]):
            if _send(producer, topic, index):
                _abort(producer)
                return
        where = "commit"
        producer.commit_transaction()
        say("committed", ms=since(begin))
    except KafkaException as failed:
        abortable = where != "init" and _abort(producer)
        fatal = not abortable
        _failure(where, failed.args[0], begin, fatal=fatal, abortable=abortable)


def _abort(producer: Producer) -> bool:
    """Whether the transaction could be aborted."""
    begin = time.monotonic()
    try:
        producer.abort_transaction()
    except KafkaException as failed:
        _failure("abort", failed.args[0], begin, fatal=True, abortable=False)
        return False
    say("aborted", ms=since(begin))
    return True


def consume(bootstrap: str, topic: str, options: Options) -> None:
    """Read `n` records in a classic group, and commit."""
    consumer = Consumer(
        _settings(bootstrap, options)
        | {
            "group.id": options["group"],
            "auto.offset.reset": "error" if options["reset"] == "none" else options["reset"],
            "isolation.level": options["isolation"],
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 300,
            "session.timeout.ms": 6000,
        }
    )
    begin, count, errors, committed = time.monotonic(), 0, 0, False

    def rebalance_callback(event: str) -> Any:
        return lambda _, partitions: partitions_event(event, partitions, begin)

    consumer.subscribe(
        [topic],
        on_assign=rebalance_callback("assigned"),
        on_revoke=rebalance_callback("revoked"),
        on_lost=rebalance_callback("lost"),
    )
    while not (committed or (is_late(options) and not count)) and errors < options["errors"]:
        where = "poll"
        try:
            for message in consumer.consume(100, 0.1):
                if error := message.error():
                    errors += 1
                    _failure("poll", error, begin)
                    continue
                count += 1
                place = {"partition": message.partition(), "offset": message.offset()}
                say("record", **place, value=(message.value() or b"").decode(), ms=since(begin))
            if not count or (count < options["n"] and not is_late(options)):
                continue
            where = "commit"
            consumer.commit(asynchronous=False)
            committed = True
            say("committed", ms=since(begin))
        except KafkaException as failed:
            errors += 1
            _failure(where, failed.args[0], begin)
    consumer.close()


def admin(bootstrap: str, topic: str, options: Options) -> None:
    """Create, describe or delete the topic."""
    client = AdminClient(_settings(bootstrap, options))
    begin, wait_s = time.monotonic(), options["timeout_ms"] / 1000
    client.poll(0)
    try:
        if options["op"] == "create":
            new = NewTopic(topic, options["partitions"], options["replicas"])
            client.create_topics([new])[topic].result(wait_s)
            say("created", ms=since(begin))
        elif options["op"] == "delete":
            client.delete_topics([topic])[topic].result(wait_s)
            say("deleted", ms=since(begin))
        else:
            found = client.list_topics(topic, timeout=wait_s).topics[topic]
            if found.error:
                raise KafkaException(found.error)
            leaders = [found.partitions[index].leader for index in sorted(found.partitions)]
            say("described", leaders=leaders, ms=since(begin))
    except KafkaException as failed:
        _failure(options["op"], failed.args[0], begin)


if __name__ == "__main__":
    run({"produce": produce, "transaction": transaction, "consume": consume, "admin": admin})
