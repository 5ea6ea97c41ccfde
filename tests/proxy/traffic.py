"""Made traffic for the session: requests, what a broker would answer, and players that cut it in any way."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

from klamm.decoders import API, encode
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.schema import Side
from klamm.proxy.session.connection import ClusterContext
from klamm.proxy.session.effects import (
    Close,
    Cut,
    Effect,
    Event,
    Exchange,
    Hold,
    Keep,
    MuteChannel,
    Pause,
    Piece,
    ReadClient,
    Send,
    Shape,
    Silence,
    To,
    carry_out,
)
from klamm.proxy.session.line import Draw
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.observing.listeners import Listeners
from klamm.proxy.session.paused import Paused
from klamm.proxy.session.rewriting.topology import Topology
from klamm.proxy.session.session import Session
from klamm.rules.orders import How
from klamm.rules.orders import Shape as Traits
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


def ground(wishes: Wishes | None = None, **settings: Any) -> ClusterContext:
    return ClusterContext("test", planner(wishes or Wishes()), Topology(20000, 20100), Stats(), **settings)


def bind_all(at: ClusterContext) -> None:
    for node in at.topology.unbound():
        at.topology.bound(node, at.topology.port_for(node.key))


@dataclass
class Outcome:
    """The effects of a session: bytes for each side, and all others in order."""

    broker: bytes = b""
    client: bytes = b""
    events: tuple[Any, ...] = ()


class Recorder:
    """An edge without sockets: it carries out at once what a session asks for, into `outcome`."""

    def __init__(self, session: Session, at: ClusterContext, outcome: Outcome) -> None:
        self.session, self.at, self.outcome = session, at, outcome

    def take(self, to: To, effects: bytes | list[Effect], data: bytes) -> None:
        """Carry out a session's result for `data`: effects, or `data` itself, which goes to this side."""
        if effects is data:
            effects = [Send(to, data)] if data else []
        assert not isinstance(effects, bytes)
        carry_out(effects, self)

    def send(self, to: To, data: Piece) -> None:
        setattr(self.outcome, to, getattr(self.outcome, to) + data)

    def bind(self) -> None:
        bind_all(self.at)
        carry_out(self.session.bound(0), self)

    def exchange(self, fields: dict[str, Any], listeners: Listeners) -> None:
        self._note(Exchange(fields, listeners))

    def event(self, kind: str, api: str, message: object, fields: dict[str, Any] | None) -> None:
        self._note(Event(kind, api, str(message), fields))

    def close(self, kind: str, api: str, message: str, fields: dict[str, Any] | None, answered: bool) -> None:
        self._note(Close(kind, api, message, fields, answered))

    def hold(self, to: To, until: int) -> None:
        self._note(Hold(to, until))

    def shape(self, to: To, traits: Traits, draw: Draw) -> None:
        self._note(Shape(to, traits, draw))

    def mute_channel(self, until: int) -> None:
        self._note(MuteChannel(until))

    def read_client(self, on: bool) -> None:
        self._note(ReadClient(on))

    def turn(self, side: Side) -> None:
        """The others' turn is over at once."""
        go_on = self.session.unmute if side == "request" else self.session.bound
        carry_out(go_on(0), self)

    def pause(self, to: To, frame: Paused) -> None:
        self._note(Pause(to, frame))

    def keep(self, correlation_id: int) -> None:
        self._note(Keep(correlation_id))

    def silence(self, close_after_ns: int) -> None:
        self._note(Silence(close_after_ns))

    def cut(self, to: To, how: How) -> None:
        self._note(Cut(to, how))

    def _note(self, effect: Effect) -> None:
        self.outcome.events += (effect,)


def kinds(events: Iterable[Any]) -> list[tuple[type, str]]:
    """Of lines for the log, and of ends: which type of effect, and which kind."""
    return [(type(event), event.kind) for event in events]


Cutting = Callable[[bytes], Iterable[bytes]]


def whole(data: bytes) -> Iterable[bytes]:
    return [data]


def byte_by_byte(data: bytes) -> Iterable[bytes]:
    return (data[i : i + 1] for i in range(len(data)))


def at_random(random: Random, most: int = 200) -> Cutting:
    def cut(data: bytes) -> Iterable[bytes]:
        pos = 0
        while pos < len(data):
            size = random.randint(1, most)
            yield data[pos : pos + size]
            pos += size

    return cut


def play(
    exchanges: list[Exchanged], cut: Cutting, at: ClusterContext | None = None, batch: int | None = None
) -> Outcome:
    """Requests in runs of `batch` (None: all), each run followed by its answers, both cut by `cut`."""
    at = at or ground()
    session = Session(at, "1", ADVERTISE)
    outcome = Outcome()
    edge = Recorder(session, at, outcome)
    step = batch or len(exchanges) or 1
    for start in range(0, len(exchanges), step):
        run = exchanges[start : start + step]
        for piece in cut(b"".join(one.request for one in run)):
            edge.take("broker", session.from_client(piece, 0), piece)
        for piece in cut(b"".join(one.answer or b"" for one in run)):
            edge.take("client", session.from_broker(piece, 0), piece)
    return outcome


BROKERS: list[dict[str, Any]] = [
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
    software = {"client_software_name": "test", "client_software_version": "1.0"} if version >= 3 else {}
    return exchange("ApiVersions", version, software, {"api_keys": keys}, correlation_id)
