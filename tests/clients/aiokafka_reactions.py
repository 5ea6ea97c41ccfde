"""aiokafka taking faults; drivers.py says how it is called and what it prints."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, for_code
from reactions import Options, Rebalances, failure, is_late, run, sasl, say, since


def _settings(bootstrap: str, options: Options) -> dict[str, Any]:
    return {"bootstrap_servers": bootstrap, "client_id": "aiokafka-reactions", **sasl(options)}


async def _started(client: Any, where: str, begin: float, **fields: Any) -> bool:
    """Whether the client could be started; if not, why is said."""
    try:
        await client.start()
    except KafkaError as error:
        failure(where, error, begin, **fields)
        return False
    return True


async def _send(producer: AIOKafkaProducer, topic: str, index: int) -> bool:
    """Send one record, and wait for it; whether it arrived."""
    begin = time.monotonic()
    try:
        partitions = sorted(await producer.partitions_for(topic))
        partition = partitions[index % len(partitions)]  # chosen here: with acks=0 nothing is told of it
        sent = await producer.send_and_wait(topic, str(index).encode(), partition=partition)
    except KafkaError as error:
        failure("produce", error, begin, i=index)
        return False
    say("produced", i=index, partition=partition, offset=sent.offset if sent else -1, ms=since(begin))
    return True


async def produce(bootstrap: str, topic: str, options: Options) -> None:
    """Send `n` records, one after another."""
    producer = AIOKafkaProducer(
        **_settings(bootstrap, options),
        acks=options["acks"] if options["acks"] == "all" else int(options["acks"]),
        enable_idempotence=options["idempotent"],
        request_timeout_ms=options["timeout_ms"],
    )
    if await _started(producer, "start", time.monotonic()):
        for index in range(options["n"]):
            await _send(producer, topic, index)


async def transaction(bootstrap: str, topic: str, options: Options) -> None:
    """Send `n` records in a transaction, and abort it where something fails."""
    begin = time.monotonic()
    producer = AIOKafkaProducer(
        **_settings(bootstrap, options),
        transactional_id=options["id"],
        transaction_timeout_ms=options["timeout_ms"],
    )
    if not await _started(producer, "init", begin, fatal=True, abortable=False):
        return
    say("initialised", ms=since(begin))
    try:
        await producer.begin_transaction()
        for index in range(options["n"]):
            if not await _send(producer, topic, index):
                await _abort(producer)
                return
        await producer.commit_transaction()
        say("committed", ms=since(begin))
    except KafkaError as error:
        abortable = await _abort(producer)
        failure("commit", error, begin, fatal=not abortable, abortable=abortable)


async def _abort(producer: AIOKafkaProducer) -> bool:
    """Whether the transaction could be aborted."""
    begin = time.monotonic()
    try:
        await producer.abort_transaction()
    except (KafkaError, AssertionError) as error:  # after a fatal error, aiokafka asserts that there was none
        failure("abort", error, begin, fatal=True, abortable=False)
        return False
    say("aborted", ms=since(begin))
    return True


class _Rebalances(Rebalances, ConsumerRebalanceListener):
    pass


async def consume(bootstrap: str, topic: str, options: Options) -> None:
    """Read `n` records in a classic group, and commit."""
    begin, count, errors, committed = time.monotonic(), 0, 0, False
    consumer = AIOKafkaConsumer(
        **_settings(bootstrap, options),
        group_id=options["group"],
        auto_offset_reset=options["reset"],
        isolation_level=options["isolation"],
        enable_auto_commit=False,
        heartbeat_interval_ms=300,
        session_timeout_ms=6000,
    )
    consumer.subscribe([topic], listener=_Rebalances(begin))
    if not await _started(consumer, "start", begin):
        return
    while not (committed or (is_late(options) and not count)) and errors < options["errors"]:
        where = "poll"
        try:
            for batch in (await consumer.getmany(timeout_ms=100)).values():
                for each in batch:
                    count += 1
                    value = each.value.decode()
                    say("record", partition=each.partition, offset=each.offset, value=value, ms=since(begin))
            if not count or (count < options["n"] and not is_late(options)):
                continue
            where = "commit"
            await consumer.commit()
            committed = True
            say("committed", ms=since(begin))
        except KafkaError as error:
            errors += 1
            failure(where, error, begin)
    await consumer.stop()


async def admin(bootstrap: str, topic: str, options: Options) -> None:
    """Create, describe or delete the topic."""
    client = AIOKafkaAdminClient(**_settings(bootstrap, options))
    begin = time.monotonic()
    if not await _started(client, "start", begin):
        return
    try:
        if options["op"] == "create":
            answer = await client.create_topics([NewTopic(topic, options["partitions"], options["replicas"])])
            _check(code for _, code, *_ in answer.topic_errors)
            say("created", ms=since(begin))
        elif options["op"] == "delete":
            answer = await client.delete_topics([topic])
            _check(code for _, code in answer.topic_error_codes)
            say("deleted", ms=since(begin))
        else:
            (found,) = await client.describe_topics([topic])
            _check([found["error_code"]])
            partitions = sorted(found["partitions"], key=lambda each: int(each["partition"]))
            say("described", leaders=[each["leader"] for each in partitions], ms=since(begin))
    except KafkaError as error:
        failure(options["op"], error, begin)


def _check(codes: Any) -> None:
    for code in codes:
        if code:
            raise for_code(code)


Coroutines = Callable[[str, str, Options], Coroutine[Any, Any, None]]


def _blocking(act: Coroutines) -> Callable[[str, str, Options], None]:
    return lambda bootstrap, topic, options: asyncio.run(act(bootstrap, topic, options))


if __name__ == "__main__":
    acts = {"produce": produce, "transaction": transaction, "consume": consume, "admin": admin}
    run({name: _blocking(act) for name, act in acts.items()})
