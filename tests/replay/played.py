"""A session of few words that is served, and clients that ask."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from klamm.captures.captured import Captured
from klamm.decoders.records import Batch, Record, write
from klamm.proxy.config_types import Address
from klamm.replay.serving.serving import Serving, load, served
from tests.captures.rows import TOPIC_ID, Talk, connection
from tests.fakes.client import Client, connect

Values = dict[str, Any]
ANYWHERE = Address("127.0.0.1", 0)
RANGES = {0: (3, 11), 1: (4, 17), 2: (1, 10), 3: (0, 13), 10: (0, 6), 18: (0, 4)}
CREATE_TOPICS = 19
NODES = [
    {"node_id": node_id, "host": f"kafka-{node_id}.internal", "port": 9092, "rack": "r"} for node_id in (1, 2)
]


def batch(first: int, *texts: str) -> bytes:
    return write(Batch(), [Record(first + i, 1000 + i, None, text.encode()) for i, text in enumerate(texts)])


def described(topic: str, *partitions: int, topic_id: bytes = TOPIC_ID) -> Values:
    rows = [
        {"error_code": 0, "partition_index": i, "leader_id": 2, "replica_nodes": [2], "isr_nodes": [2]}
        for i in partitions
    ]
    return {"error_code": 0, "name": topic, "topic_id": topic_id, "partitions": rows}


def metadata(talk: Talk, asked: list[str] | None, *topics: Values, version: int = 12) -> Talk:
    names = None if asked is None else [{"name": name} for name in asked]
    if version < 10:
        topics = tuple({k: v for k, v in topic.items() if k != "topic_id"} for topic in topics)
    response = {"brokers": NODES, "cluster_id": "c", "controller_id": 1, "topics": list(topics)}
    return talk.exchange("Metadata", version, {"topics": names}, response)


def fetched(talk: Talk, topic: str, index: int, data: bytes, version: int = 12, **row: Any) -> Talk:
    found = {"partition_index": index, "error_code": 0, "high_watermark": 9, "records": data, **row}
    response = {"responses": [{"topic": topic, "partitions": [found]}]}
    return talk.exchange("Fetch", version, fetch(topic, index, 0), response)


def session() -> Talk:
    """A recorded session: the answers to a consumer of topic orders."""
    talk = Talk(connection(broker="bootstrap"))
    ranges = {**RANGES, CREATE_TOPICS: (2, 7)}
    keys = [{"api_key": key, "min_version": a, "max_version": b} for key, (a, b) in ranges.items()]
    talk.exchange("ApiVersions", 3, {}, {"error_code": 0, "api_keys": keys})
    metadata(talk, ["orders"], described("orders", 0, 1))
    metadata(talk, None, described("orders", 0, 1), described("bills", 0, topic_id=bytes(15) + b"\7"))
    fetched(talk, "orders", 0, batch(0, "a", "b") + batch(2, "c"))
    return fetched(talk, "orders", 1, batch(0, "d"))


@dataclass
class Played:
    """A served capture, and the lines of its log."""

    serving: Serving
    log_lines: list[str] = field(default_factory=list)
    clients: list[Client] = field(default_factory=list)

    async def client(self, node: int = 0) -> Client:
        key = sorted(self.serving.addresses)[node]
        self.clients.append(await connect(*self.serving.addresses[key]))
        return self.clients[-1]


@asynccontextmanager
async def playing(rows: list[Captured], strict: bool = False) -> AsyncIterator[Played]:
    lines: list[str] = []
    async with served(load(rows), ANYWHERE, lines.append, strict) as serving:
        played = Played(serving, lines)
        try:
            yield played
        finally:
            for client in played.clients:
                client.close()


def fetch(topic: str, index: int, offset: int, version: int = 12, **asked: Any) -> Values:
    row = {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
    name = {"topic_id": TOPIC_ID} if version > 12 else {"topic": topic}
    waits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20}
    return {**waits, "topics": [{**name, "partitions": [row]}], **asked}


def first_row(answer: Values) -> Values:
    row: Values = answer["responses"][0]["partitions"][0]
    return row
