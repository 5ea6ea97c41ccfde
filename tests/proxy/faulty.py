"""A proxy under rules, a client that asks through it, and what is heard and stored."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from klamm.decoders import API, ERRORS, encode
from klamm.decoders.headers import request_frame
from klamm.decoders.records import Record
from tests.fakes.broker import Broker
from tests.fakes.client import Client
from tests.fakes.edge import Edge, cluster
from tests.rules.acting import read

FETCH = {"topics": [{"topic": "orders", "partitions": [{"partition": 0}]}]}
TRANSACTIONS = ("EndTxn", "InitProducerId", "AddOffsetsToTxn", "TxnOffsetCommit")


@asynccontextmanager
async def under(rules: str, brokers: int = 1) -> AsyncIterator[tuple[Edge, Client, Broker]]:
    """klamm with these rules, and a client of the first broker."""
    async with cluster(brokers) as (edge, nodes):
        for name in TRANSACTIONS:
            nodes[0].answers[name] = lambda connection, request: {}
        edge.rule(rules)
        yield edge, await edge.client(1), nodes[0]


def send_as(client: Client, client_id: str, name: str, version: int, values: dict[str, Any]) -> None:
    """A request of another client id."""
    client.correlation_id += 1
    body = encode(values, API[name].key, version, "request")
    client.transport.write(request_frame(API[name], version, client.correlation_id, client_id, body))


def produced(data: bytes = b"", topic: str = "orders") -> dict[str, Any]:
    rows = [{"index": 0, "records": data}]
    return {"acks": -1, "topic_data": [{"name": topic, "partition_data": rows}]}


async def produce(client: Client, data: bytes = b"", topic: str = "orders") -> str:
    """The error of a Produce."""
    answer = await client.ask("Produce", 9, produced(data, topic))
    return ERRORS[answer["responses"][0]["partition_responses"][0]["error_code"]].name


async def fetch(client: Client) -> str:
    """The error of a Fetch."""
    return ERRORS[(await client.ask("Fetch", 12, FETCH))["error_code"]].name


async def beat(client: Client) -> str:
    """The error of a Heartbeat."""
    return ERRORS[(await client.ask("Heartbeat", 4, {"group_id": "g"}))["error_code"]].name


async def took(asked: Awaitable[Any]) -> float:
    """Seconds."""
    before = monotonic()
    await asked
    return monotonic() - before


async def quickest(ask: Callable[[], Awaitable[Any]]) -> float:
    """Seconds; of several, since a busy machine can make any of them late."""
    return min([await took(ask()) for _ in range(20)])


def serves(broker: Broker, data: bytes) -> None:
    """Let the broker answer each Fetch with these records from now on."""
    topic = {"topic": "orders", "partitions": [{"partition_index": 0, "records": data}]}
    broker.answers["Fetch"] = lambda connection, request: {"responses": [topic]}


async def fetched(client: Client) -> list[Record]:
    """The records of a Fetch, under a right checksum."""
    (topic,) = (await client.ask("Fetch", 12, FETCH))["responses"]
    ((batch, rows),) = read(topic["partitions"][0]["records"])
    assert batch.crc_ok
    return rows


def stored(broker: Broker) -> list[list[Record]]:
    """The records of each Produce that reached the broker, under a right checksum."""
    found = []
    for request in broker.requests("Produce"):
        ((batch, rows),) = read(request.values["topic_data"][0]["partition_data"][0]["records"])
        assert batch.crc_ok
        found.append(rows)
    return found
