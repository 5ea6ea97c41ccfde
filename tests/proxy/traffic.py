"""Made traffic for the session: requests, what a broker would answer, and players that cut it in any way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame, response_frame
from klamm.proxy.connection import Ground
from klamm.proxy.session import Session
from klamm.proxy.stats import Stats
from klamm.proxy.topology import Topology
from klamm.rules.plan import Planner, Wishes

ADVERTISE = "klamm.example"
TOPIC_ID = bytes(range(16))


@dataclass(frozen=True)
class Exchanged:
    """A request and its answer as they come from the two ends; `answer` None where none is due."""

    request: bytes
    answer: bytes | None


def exchange(
    name: str,
    version: int,
    asked: dict[str, Any],
    answered: dict[str, Any] | None,
    correlation_id: int = 1,
    client_id: str | None = "app",
    answer_version: int | None = None,
) -> Exchanged:
    api = API[name]
    request = request_frame(
        api, version, correlation_id, client_id, encode(asked, api.key, version, "request")
    )
    if answered is None:
        return Exchanged(request, None)
    body = encode(answered, api.key, version if answer_version is None else answer_version, "response")
    return Exchanged(request, response_frame(api, version, correlation_id, body))


planner = cache(Planner)  # plans hold no state


def ground(wishes: Wishes | None = None, **settings: Any) -> Ground:
    return Ground("test", planner(wishes or Wishes()), Topology(20000, 20100), Stats(), **settings)


def bind_all(at: Ground) -> None:
    for node in at.topology.unbound():
        at.topology.bound(node, at.topology.port_for(node.key))


@dataclass
class Outcome:
    """What a session did: bytes per side, and everything else in order."""

    broker: bytes = b""
    client: bytes = b""
    events: tuple[Any, ...] = ()

    def take(self, session: Session, side: str, effects: Any, data: bytes, at: Ground) -> None:
        if effects is data:
            effects = [("send", side, data)] if data else []
        for effect in effects:
            if effect[0] == "send":
                setattr(self, effect[1], getattr(self, effect[1]) + effect[2])
            elif effect[0] == "bind":
                bind_all(at)
                self.take(session, "client", session.bound(0), b"", at)
            else:
                self.events += (effect,)


Cut = Callable[[bytes], Iterable[bytes]]


def whole(data: bytes) -> Iterable[bytes]:
    return [data]


def byte_by_byte(data: bytes) -> Iterable[bytes]:
    return (data[i : i + 1] for i in range(len(data)))


def at_random(random: Random, most: int = 200) -> Cut:
    def cut(data: bytes) -> Iterable[bytes]:
        pos = 0
        while pos < len(data):
            size = random.randint(1, most)
            yield data[pos : pos + size]
            pos += size

    return cut


def play(exchanges: list[Exchanged], cut: Cut, at: Ground | None = None, batch: int | None = None) -> Outcome:
    """Requests in runs of `batch` (None: all), each run followed by its answers, both cut by `cut`."""
    at = at or ground()
    session = Session(at, "1", ADVERTISE)
    outcome = Outcome()
    step = batch or len(exchanges) or 1
    for start in range(0, len(exchanges), step):
        run = exchanges[start : start + step]
        for piece in cut(b"".join(one.request for one in run)):
            outcome.take(session, "broker", session.from_client(piece, 0), piece, at)
        for piece in cut(b"".join(one.answer or b"" for one in run)):
            outcome.take(session, "client", session.from_broker(piece, 0), piece, at)
    return outcome


BROKERS = [
    {"node_id": 1, "host": "kafka-1.internal", "port": 9092, "rack": None},
    {"node_id": 2, "host": "kafka-2.internal", "port": 9092, "rack": "b"},
    {"node_id": 1000007, "host": "::1", "port": 9093, "rack": ""},
]


def metadata(version: int, correlation_id: int = 1, topics: int = 3) -> Exchanged:
    brokers = [{k: v for k, v in row.items() if k != "rack" or version >= 1} for row in BROKERS]
    names = [f"topic-{n}" for n in range(topics)]
    parts = [
        {"partition_index": p, "leader_id": 1, "replica_nodes": [1, 2], "isr_nodes": [1]} for p in range(4)
    ]
    rows = [
        {"name": name, "partitions": parts} | ({"topic_id": TOPIC_ID} if version >= 10 else {})
        for name in names
    ]
    return exchange("Metadata", version, {}, {"brokers": brokers, "topics": rows}, correlation_id)


def produce(
    version: int,
    correlation_id: int = 1,
    acks: int = -1,
    size: int = 100,
    endpoints: bool = False,
    topic: str = "orders",
) -> Exchanged:
    names = {"topic_id": TOPIC_ID} if version >= 13 else {"name": topic}
    asked = {
        "acks": acks,
        "timeout_ms": 9,
        "topic_data": [{**names, "partition_data": [{"index": 0, "records": bytes(size)}]}],
    }
    answered: dict[str, Any] = {
        "responses": [
            {
                **names,
                "partition_responses": [{"index": 0, "error_code": 6 if endpoints else 0, "base_offset": 7}],
            }
        ]
    }
    if endpoints:
        answered["node_endpoints"] = BROKERS
    return exchange("Produce", version, asked, None if acks == 0 else answered, correlation_id)


def fetch(
    version: int, correlation_id: int = 1, size: int = 100, endpoints: bool = False, parts: int = 1
) -> Exchanged:
    names = {"topic_id": TOPIC_ID} if version >= 13 else {"topic": "orders"}
    rows = [
        {
            "partition_index": p,
            "error_code": 6 if endpoints and p == parts - 1 else 0,
            "high_watermark": 9,
            "records": bytes(size),
        }
        for p in range(parts)
    ]
    answered: dict[str, Any] = {"responses": [{**names, "partitions": rows}]}
    if endpoints:
        answered["node_endpoints"] = BROKERS
    asked = {"topics": [{**names, "partitions": [{"partition": p} for p in range(parts)]}]}
    return exchange("Fetch", version, asked, answered, correlation_id)


def api_versions(version: int, rows: list[tuple[int, int, int]], correlation_id: int = 1) -> Exchanged:
    keys = [{"api_key": key, "min_version": first, "max_version": last} for key, first, last in rows]
    said = {"client_software_name": "test", "client_software_version": "1.0"} if version >= 3 else {}
    return exchange("ApiVersions", version, said, {"api_keys": keys}, correlation_id)
