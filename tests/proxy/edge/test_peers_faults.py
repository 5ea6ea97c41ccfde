"""Every fault of klamm's peers, by its name there, as a rule file, through a proxy that runs.

Conduktor Gateway's eight chaos interceptors, Toxiproxy's nine toxics, and the methods and triggers of the
fault proxy in Kafka's own tests.
"""

from __future__ import annotations

from time import monotonic

import pytest

from klamm.decoders import ERRORS
from tests.fakes.waiting import on_uvloop, turns
from tests.proxy.faulty import (
    FETCH,
    TRANSACTIONS,
    beat,
    fetch,
    fetched,
    produce,
    produced,
    quickest,
    send_as,
    serves,
    stored,
    took,
    under,
)
from tests.rules.acting import batch_of

# Conduktor Gateway


@on_uvloop
async def test_conduktor_simulate_broken_brokers() -> None:
    rules = """
    - {api: Fetch, error: UNKNOWN_SERVER_ERROR, chance: 50%}
    - {api: Produce, error: CORRUPT_MESSAGE, chance: 50%}
    """
    async with under(rules) as (_, client, broker):
        sent = [await produce(client) for _ in range(40)]
        asked = [await fetch(client) for _ in range(40)]
        assert set(sent) == {"NONE", "CORRUPT_MESSAGE"}
        assert set(asked) == {"NONE", "UNKNOWN_SERVER_ERROR"}
        assert 8 <= sent.count("NONE") <= 32
        assert len(broker.requests("Produce")) == sent.count("NONE")
        assert len(broker.requests("Fetch")) == asked.count("NONE")
        assert await beat(client) == "NONE"


@on_uvloop
async def test_conduktor_simulate_leader_elections_errors() -> None:
    rules = """
    - {api: [Produce, Fetch], error: LEADER_NOT_AVAILABLE, times: 2}
    - {api: [Produce, Fetch], error: NOT_LEADER_OR_FOLLOWER, times: 2}
    - {api: [Produce, Fetch], error: BROKER_NOT_AVAILABLE, times: 2}
    """
    async with under(rules) as (_, client, _):
        answers = [await ask(client) for ask in (produce, fetch, produce, produce, fetch, fetch, produce)]
        assert answers == [
            "LEADER_NOT_AVAILABLE", "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER",
            "NOT_LEADER_OR_FOLLOWER", "BROKER_NOT_AVAILABLE", "BROKER_NOT_AVAILABLE", "NONE",
        ]  # fmt: skip


@on_uvloop
async def test_conduktor_simulate_slow_broker() -> None:
    rules = "    - {api: [Produce, Fetch], delay: {time: 60ms, jitter: 20ms}, broker: 1}"
    async with under(rules) as (_, client, _):
        assert await took(produce(client)) >= 0.04
        assert await took(fetch(client)) >= 0.04
        assert await quickest(lambda: beat(client)) < 0.04


@on_uvloop
async def test_conduktor_simulate_slow_producers_consumers() -> None:
    async with under("    - {api: [Produce, Fetch], topic: ord*, delay: 60ms}") as (_, client, _):
        assert await quickest(lambda: produce(client, topic="bills")) < 0.06
        assert await took(produce(client, topic="orders")) >= 0.06
        assert await took(fetch(client)) >= 0.06


@on_uvloop
async def test_conduktor_simulate_latency() -> None:
    async with under("    - {delay: 50ms, every: 2}") as (_, client, _):
        times = [await took(ask(client)) for ask in (produce, beat, fetch, produce) * 3]
        assert min(times[1::2]) >= 0.05
        assert min(times[::2]) < 0.05


@on_uvloop
async def test_conduktor_produce_simulate_message_corruption() -> None:
    rules = "    - {api: Produce, topic: orders, corrupt: {what: value, size: 10}}"
    async with under(rules) as (_, client, broker):
        assert await produce(client, batch_of(b"fine")) == "NONE"
        ((row,),) = stored(broker)
        assert row.value is not None
        assert row.value.startswith(b"fine")
        assert len(row.value) == 14


@on_uvloop
async def test_conduktor_fetch_simulate_message_corruption() -> None:
    rules = "    - {api: Fetch, topic: orders, corrupt: {what: value, size: 10}}"
    async with under(rules) as (_, client, broker):
        serves(broker, batch_of(b"fine", codec="gzip"))
        (row,) = await fetched(client)
        assert row.value is not None
        assert row.value.startswith(b"fine")
        assert len(row.value) == 14


@pytest.mark.parametrize("target", ["PRODUCE", "CONSUME"])
@on_uvloop
async def test_conduktor_duplicate_messages(target: str) -> None:
    api = {"PRODUCE": "Produce", "CONSUME": "Fetch"}[target]
    async with under(f"    - {{api: {api}, topic: orders, duplicate: {{records: true}}}}") as (
        _,
        client,
        broker,
    ):
        serves(broker, batch_of(b"fine"))
        await produce(client, batch_of(b"fine"))
        found = stored(broker)[0] if target == "PRODUCE" else await fetched(client)
        assert [row.value for row in found] == [b"fine", b"fine"]


@pytest.mark.parametrize("target", ["PRODUCE", "CONSUME"])
@on_uvloop
async def test_conduktor_simulate_invalid_schema_id(target: str) -> None:
    api = {"PRODUCE": "Produce", "CONSUME": "Fetch"}[target]
    rules = f"    - {{api: {api}, topic: orders, corrupt: {{what: schema id, schema_id: 999}}}}"
    async with under(rules) as (_, client, broker):
        serves(broker, batch_of(b"\0\0\0\0\1avro"))
        await produce(client, batch_of(b"\0\0\0\0\1avro"))
        (row,) = stored(broker)[0] if target == "PRODUCE" else await fetched(client)
        assert row.value == b"\0\0\0\x03\xe7avro"


# Toxiproxy


@on_uvloop
async def test_toxiproxy_latency() -> None:
    rules = "    - {side: response, delay: {time: 60ms, jitter: 10ms}, api: Heartbeat}"
    async with under(rules) as (_, client, _):
        assert await took(beat(client)) >= 0.05


@on_uvloop
async def test_toxiproxy_down() -> None:
    async with under("    - {event: connect, broker: 1, down: true}", brokers=2) as (edge, client, broker):
        assert await client.ended() == "RST"
        assert await beat(await edge.client(2)) == "NONE"
        edge.rule("")
        assert await beat(await edge.client(1)) == "NONE"
        assert len(broker.requests("Heartbeat")) == 1


@on_uvloop
async def test_toxiproxy_bandwidth() -> None:
    async with under("    - {event: connect, bandwidth: 100kB}") as (_, client, broker):
        serves(broker, bytes(20_000))
        assert await took(client.ask("Fetch", 12, FETCH)) >= 0.19


@on_uvloop
async def test_toxiproxy_slow_close() -> None:
    async with under("    - {event: connect, slow_close: 60ms}") as (_, client, broker):
        await beat(client)
        broker.connections[-1].close()
        assert await took(client.ended()) >= 0.05


@on_uvloop
async def test_toxiproxy_timeout() -> None:
    before = monotonic()  # the time begins with the connection
    async with under("    - {event: connect, blackhole: 200ms}") as (_, client, broker):
        client.send("Heartbeat", 4, {"group_id": "g"})
        await client.ended()
        assert monotonic() - before >= 0.2
        assert client.received == b""
        assert broker.requests("Heartbeat") == []


@on_uvloop
async def test_toxiproxy_timeout_of_0() -> None:
    async with under("    - {api: Heartbeat, blackhole: true}") as (edge, client, broker):
        assert await produce(client) == "NONE"
        client.send("Heartbeat", 4, {"group_id": "g"})
        client.send("Produce", 9, produced())
        assert await produce(await edge.client(1)) == "NONE"
        await turns()
        assert client.received == b""
        assert client.ending == ""
        assert broker.requests("Heartbeat") == []
        assert len(broker.requests("Produce")) == 2
        client.close()
        await edge.links(1)


@on_uvloop
async def test_toxiproxy_reset_peer() -> None:
    before = monotonic()
    async with under("    - {event: connect, reset: 200ms}") as (_, client, _):
        client.send("Heartbeat", 4, {"group_id": "g"})
        await client.ended()
        assert monotonic() - before >= 0.2
        assert (client.ending, client.received) == ("RST", b"")


@on_uvloop
async def test_toxiproxy_slicer() -> None:
    rules = "    - {event: connect, slicer: {size: 10, variation: 2, pause: 5ms, side: both}}"
    async with under(rules) as (_, client, broker):
        serves(broker, bytes(100))
        assert await took(fetch(client)) >= 0.05
        pieces: list[int] = []
        broker.on_data = lambda connection, data: pieces.append(len(data))
        client.send("Fetch", 12, FETCH)
        await broker.until(lambda: sum(pieces) >= 80)
        assert len(pieces) > 1  # a busy receiver reads several at once


@on_uvloop
async def test_toxiproxy_limit_data() -> None:
    async with under("    - {event: connect, limit_data: 100}") as (_, client, broker):
        serves(broker, bytes(500))
        client.send("Fetch", 12, FETCH)
        assert await client.ended() == "FIN"
        assert len(client.received) == 100


@on_uvloop
async def test_toxiproxy_packet_loss() -> None:
    rules = "    - {event: connect, packet_loss: {loss: 40%, timeout: 20ms, correlation: 25%}}"
    async with under(rules) as (_, client, _):
        times = [await took(beat(client)) for _ in range(25)]
        assert sum(time >= 0.02 for time in times) >= 3
        assert min(times) < 0.02


@on_uvloop
async def test_toxiproxy_toxicity() -> None:
    async with under("    - {event: connect, down: true, chance: 50%}") as (edge, *_):
        clients = [await edge.client(1) for _ in range(30)]
        for client in clients:
            if not client.lost:
                client.send("Heartbeat", 4, {"group_id": "g"})
            await client.changed.until(lambda client=client: client.received or client.lost)
        assert 6 <= sum(client.lost for client in clients) <= 24


# The fault proxy of Kafka's tests


@pytest.mark.parametrize("api", [*TRANSACTIONS, "Produce", "Fetch"])
@on_uvloop
async def test_kafka_inject_error(api: str) -> None:
    async with under(f"    - {{api: {api}, error: COORDINATOR_NOT_AVAILABLE, times: 1}}") as (
        _,
        client,
        broker,
    ):
        values = {
            "Produce": produced(), "Fetch": FETCH,
            "TxnOffsetCommit": {"topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]},
        }.get(api, {})  # fmt: skip
        version = {"Produce": 9, "Fetch": 12}.get(api, 3)
        answer = str(await client.ask(api, version, values))
        assert f"'error_code': {ERRORS['COORDINATOR_NOT_AVAILABLE'].code}" in answer
        assert broker.requests(api) == []
        assert "'error_code': 15" not in str(await client.ask(api, version, values))


@on_uvloop
async def test_kafka_disconnect_on() -> None:
    async with under("    - {api: EndTxn, disconnect: after, times: 1}") as (edge, client, broker):
        client.send("EndTxn", 3, {"transactional_id": "t"})
        assert await client.ended() == "RST"
        assert len(broker.requests("EndTxn")) == 1
        assert (await (await edge.client(1)).ask("EndTxn", 3))["error_code"] == 0


@pytest.mark.parametrize(
    ("when", "how", "ending", "received", "asked"),
    [
        ("before", "rst", "RST", 0, 0), ("before", "fin", "FIN", 0, 0), ("after", "fin", "FIN", 0, 1),
        ("mid frame", "rst", "RST", 7, 1), ("mid frame", "fin", "FIN", 7, 1),
        ("answered", "rst", "RST", 16, 1), ("answered", "fin", "FIN", 16, 1),
    ],
)  # fmt: skip
@on_uvloop
async def test_kafka_disconnect_on_at_any_moment(
    when: str, how: str, ending: str, received: int, asked: int
) -> None:
    rules = f"    - {{api: Heartbeat, disconnect: {{when: {when}, how: {how}}}}}"
    async with under(rules) as (_, client, broker):
        assert await produce(client) == "NONE"
        client.send("Heartbeat", 4, {"group_id": "g"})
        assert await client.ended() == ending
        assert len(client.received) == received
        assert len(broker.requests("Heartbeat")) == asked


@on_uvloop
async def test_kafka_delay_on() -> None:
    async with under("    - {api: Produce, delay: 60ms}") as (_, client, _):
        assert await took(produce(client)) >= 0.06
        assert await quickest(lambda: beat(client)) < 0.06


@on_uvloop
async def test_kafka_blackhole_client_reversibly() -> None:
    async with under("    - {client: '*-zombie-*', blackhole: true}") as (edge, client, broker):
        send_as(client, "the-zombie-1", "Heartbeat", 4, {"group_id": "g"})
        assert await beat(await edge.client(1)) == "NONE"
        assert len(broker.requests("Heartbeat")) == 1
        assert client.received == b""
        edge.rule("")
        send_as(client, "the-zombie-1", "Heartbeat", 4, {"group_id": "g"})  # its connection stays so
        again = await edge.client(1)
        send_as(again, "the-zombie-1", "Heartbeat", 4, {"group_id": "g"})
        assert (await again.answer("Heartbeat", 4))["error_code"] == 0
        assert (len(broker.requests("Heartbeat")), client.received, client.ending) == (2, b"", "")


@pytest.mark.parametrize(
    ("trigger", "times"),
    [
        pytest.param("times: 1", [1], id="once"),
        pytest.param("nth: 3", [3], id="onCall"),
        pytest.param("times: 3", [1, 2, 3], id="times"),
        pytest.param("every: 2", [2, 4, 6, 8], id="every"),
    ],
)
@on_uvloop
async def test_kafka_trigger(trigger: str, times: list[int]) -> None:
    async with under(f"    - {{api: Heartbeat, error: REBALANCE_IN_PROGRESS, {trigger}}}") as (_, client, _):
        answers = [await beat(client) for _ in range(8)]
        assert [number for number, error in enumerate(answers, 1) if error != "NONE"] == times


@on_uvloop
async def test_kafka_trigger_probability_is_the_same_in_every_run() -> None:
    runs = []
    for _ in range(2):
        async with under("    - {api: Heartbeat, error: REBALANCE_IN_PROGRESS, chance: 0.4}") as (
            _,
            client,
            _,
        ):
            runs.append([await beat(client) for _ in range(30)])
    assert runs[0] == runs[1]
    assert 5 <= runs[0].count("REBALANCE_IN_PROGRESS") <= 20


@on_uvloop
async def test_kafka_predicate_on_client_and_transactional_id() -> None:
    rules = """
    - {api: EndTxn, client: payer-*, where: transactional_id == "t-1", error: INVALID_PRODUCER_EPOCH}
    """
    async with under(rules) as (_, client, _):
        answers = []
        for client_id, transaction in (("payer-1", "t-1"), ("payer-1", "t-2"), ("other", "t-1")):
            send_as(client, client_id, "EndTxn", 3, {"transactional_id": transaction})
            answers.append((await client.answer("EndTxn", 3))["error_code"])
        assert answers == [ERRORS["INVALID_PRODUCER_EPOCH"].code, 0, 0]
