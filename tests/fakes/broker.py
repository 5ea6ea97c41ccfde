"""A Kafka broker of few words, on the loop of the test: it answers what clients and klamm ask, and misbehaves
on demand.

`answers` maps an API to what the broker does with it: a function of (connection, request) that gives the
response's values, or the bytes of a whole frame, or None for no answer. APIs are named as in Kafka; a
connection's own methods do the rest.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from klamm.decoders import API, decode, encode
from klamm.decoders.headers import (
    read_request_header,
    request_header_version,
    response_frame,
)
from tests.fakes.waiting import LOOK_S, PATIENCE_S, Signal

QUORUM = [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: closing sends RST


class Request(NamedTuple):
    """One request as the broker read it; `values` are empty where the tables do not know the version."""

    name: str
    version: int
    correlation_id: int
    client_id: str | None
    values: dict[str, Any]


Answer = Callable[["Connection", Request], "dict[str, Any] | bytes | None"]


@dataclass
class Cluster:
    """The answers of all its brokers: nodes and controllers as id -> (host, port)."""

    cluster_id: str = "fake-cluster"
    nodes: dict[int, tuple[str, int]] = field(default_factory=dict)
    controllers: dict[int, tuple[str, int]] = field(default_factory=dict)
    versions: dict[str, tuple[int, int]] = field(default_factory=dict)  # in ApiVersions; {}: as the tables
    hidden: set[str] = field(default_factory=set)  # APIs left out of ApiVersions


class Connection(asyncio.Protocol):
    """A client of the broker: what it sent, and how it ended."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.transport: asyncio.Transport
        self.received = 0  # bytes
        self.rest = b""
        self.requests: list[Request] = []
        self.fin = False  # the client has sent its last byte
        self.lost = False
        self.error: Exception | None = None  # the exception that ended it, if it was no close

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.broker.connections.append(self)
        if self.broker.stopped:  # accepted before, and given to the loop after
            self.reset()
            return
        if self.broker.on_connect is not None:
            self.broker.on_connect(self)
        self.broker.changed.send()

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self.broker.on_data is not None:
            self.broker.on_data(self, data)
        else:
            self.rest += data
            while len(self.rest) >= 4 and len(self.rest) >= 4 + (
                size := int.from_bytes(self.rest[:4], "big")
            ):
                frame, self.rest = self.rest[4 : 4 + size], self.rest[4 + size :]
                self._take(frame)
        self.broker.changed.send()

    def eof_received(self) -> bool:
        self.fin = True
        self.broker.changed.send()
        return self.broker.stays_half_open and self.transport.get_extra_info("sslcontext") is None

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost, self.error = True, exc
        self.broker.changed.send()

    def _take(self, frame: bytes) -> None:
        key, version = struct.unpack_from(">hh", frame)
        api = API.any(key)
        header = read_request_header(frame, request_header_version(api, version))
        known = version in api.versions
        values = decode(frame[header.size :], key, version, "request") if known else {}
        request = Request(api.name, version, header.correlation_id, header.client_id, values)
        self.requests.append(request)
        self.answer(request)

    def answer(self, request: Request) -> None:
        """Sends the broker's answer to the request now."""
        answer = self.broker.answers.get(request.name, silent)(self, request)
        if isinstance(answer, dict):
            answer = framed(request, answer)
        if answer is not None:
            self.transport.write(answer)

    def send_fin(self) -> None:
        self.transport.write_eof()

    def close(self) -> None:
        self.transport.close()

    def reset(self) -> None:
        """End it with RST."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None:  # TLS that is closing already
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.abort()


def framed(request: Request, values: dict[str, Any]) -> bytes:
    """A whole response."""
    api = API[request.name]
    body = encode(values, api.key, request.version, "response")
    return response_frame(api, request.version, request.correlation_id, body)


class Broker:
    """One node of a `Cluster`, listening until `stop`."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.cluster, self.node_id = cluster, node_id
        self.connections: list[Connection] = []
        self.answers: dict[str, Answer] = dict(ANSWERS)
        self.on_connect: Callable[[Connection], None] | None = None
        self.on_data: Callable[[Connection, bytes], None] | None = None  # instead of reading requests
        self.stays_half_open = False  # else it closes when the client has sent its last byte
        self.changed = Signal()
        self.stopped = False
        self.server: asyncio.Server

    async def start(
        self,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        named: str | None = None,
    ) -> Broker:
        """Listen, and be in the cluster under this address, or under the name `named`. A port that it had
        before may be one end of another process's connection for a while: it waits for it.
        """
        loop = asyncio.get_running_loop()
        self.stopped = False
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    self.server = await loop.create_server(lambda: Connection(self), host, port, ssl=tls)
                    break
                except OSError as error:
                    if error.errno != errno.EADDRINUSE or not port:
                        raise
                    await asyncio.sleep(LOOK_S)
        self.host, self.port = host, self.server.sockets[0].getsockname()[1]
        self.cluster.nodes[self.node_id] = (named or host, self.port)
        return self

    @asynccontextmanager
    async def listening(self, **how: Any) -> AsyncIterator[Broker]:
        """From `start` to `stop`."""
        await self.start(**how)
        try:
            yield self
        finally:
            await self.stop()

    async def stop(self) -> None:
        """Close the listener and reset every connection."""
        self.stopped = True
        self.server.close()
        for connection in self.connections:
            if not connection.lost:
                connection.reset()
        await self.until(lambda: all(connection.lost for connection in self.connections))

    async def until(self, true: Callable[[], Any]) -> None:
        """Wait until something that happens here has made it true."""
        await self.changed.until(true)

    async def connection(self, number: int = 0) -> Connection:
        """The connection that was made so many after the first."""
        await self.until(lambda: len(self.connections) > number)
        return self.connections[number]

    async def asked(self, name: str, times: int = 1) -> list[Request]:
        """The requests of one API, when there are so many."""
        await self.until(lambda: len(self.requests(name)) >= times)
        return self.requests(name)

    def requests(self, name: str) -> list[Request]:
        return [one for connection in self.connections for one in connection.requests if one.name == name]

    def serving(self, name: str, client_id: str) -> list[Connection]:
        """The connections on which a client asked for this."""
        asks = [one for one in self.connections if any(r.client_id == client_id for r in one.requests)]
        return [one for one in asks if any(r.name == name for r in one.requests)]


class Waiting:
    """Requests of an API that a broker answers only when it is told to."""

    def __init__(self, broker: Broker, api: str = "Heartbeat") -> None:
        self._broker, self._api, self._before = broker, api, broker.answers[api]
        self.asked: list[tuple[Connection, Request]] = []
        broker.answers[api] = lambda connection, request: self.asked.append((connection, request))

    async def came(self, count: int = 1) -> None:
        await self._broker.until(lambda: len(self.asked) >= count)

    def answer(self, error_code: int = 0) -> None:
        """Answer the one that waits longest."""
        connection, request = self.asked.pop(0)
        connection.transport.write(framed(request, {"error_code": error_code}))

    def release(self) -> None:
        """Answer those that wait, and later ones at once, as before."""
        self._broker.answers[self._api] = self._before
        for connection, request in self.asked:
            connection.answer(request)


def silent(connection: Connection, request: Request) -> None:
    """An answer: none."""


def closes(connection: Connection, request: Request) -> None:
    """An answer: the broker closes, as it does when it wants SASL first."""
    connection.close()


def resets(connection: Connection, request: Request) -> None:
    """An answer: RST."""
    connection.reset()


def api_versions(connection: Connection, request: Request) -> dict[str, Any] | bytes:
    cluster = connection.broker.cluster
    asked = (
        "ApiVersions",
        "Metadata",
        "FindCoordinator",
        "DescribeCluster",
        "DescribeQuorum",
        "Produce",
        "Fetch",
        "SaslHandshake",
        "SaslAuthenticate",
        "Heartbeat",
    )
    rows = []
    for api in (API[name] for name in asked if name not in cluster.hidden):
        first, last = cluster.versions.get(api.name, (api.versions.first, api.versions.last))
        rows.append({"api_key": api.key, "min_version": first, "max_version": last})
    own = next((row for row in rows if row["api_key"] == 18), None)
    if own is not None and request.version > own["max_version"]:
        body = encode({"error_code": 35, "api_keys": [own]}, 18, 0, "response")
        return response_frame(API[18], 0, request.correlation_id, body)
    return {"api_keys": rows}


def _rows(nodes: dict[int, tuple[str, int]], name: str, *more: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{name: id_, "host": host, "port": port, **dict(more)} for id_, (host, port) in nodes.items()]


def metadata(connection: Connection, request: Request) -> dict[str, Any]:
    cluster, version = connection.broker.cluster, request.version
    named = {"cluster_id": cluster.cluster_id} if version >= 2 else {}
    return {"brokers": _rows(cluster.nodes, "node_id"), "topics": [], **named}


def find_coordinator(connection: Connection, request: Request) -> dict[str, Any]:
    broker = connection.broker
    host, port = broker.cluster.nodes[broker.node_id]
    where = {"node_id": broker.node_id, "host": host, "port": port}
    if request.version < 4:
        return where
    return {"coordinators": [{"key": key, **where} for key in request.values["coordinator_keys"]]}


def describe_cluster(connection: Connection, request: Request) -> dict[str, Any]:
    cluster, kind = connection.broker.cluster, request.values.get("endpoint_type", 1)
    rows = _rows(cluster.controllers if kind == 2 else cluster.nodes, "broker_id")
    kinds = {"endpoint_type": kind} if request.version >= 1 else {}
    return {"cluster_id": cluster.cluster_id, "controller_id": 1, "brokers": rows, **kinds}


def describe_quorum(connection: Connection, request: Request) -> dict[str, Any]:
    """Names the controllers to those who ask for the quorum's only partition, and to nobody else."""
    if request.values["topics"] != QUORUM:
        topics = [
            {
                "topic_name": topic["topic_name"],
                "partitions": [
                    {"partition_index": part["partition_index"], "error_code": 3}
                    for part in topic["partitions"]
                ],
            }
            for topic in request.values["topics"]
        ]
        return {"topics": topics, "nodes": []} if request.version >= 2 else {"topics": topics}
    rows = [
        {"node_id": id_, "listeners": [{"name": "CONTROLLER", "host": host, "port": port}]}
        for id_, (host, port) in connection.broker.cluster.controllers.items()
    ]
    return {"topics": [], "nodes": rows} if request.version >= 2 else {"topics": []}


def produce(connection: Connection, request: Request) -> dict[str, Any] | None:
    if request.values["acks"] == 0:
        return None
    rows = [
        {
            **{name: topic[name] for name in ("name", "topic_id") if name in topic},
            "partition_responses": [
                {"index": part["index"], "error_code": 0, "base_offset": 0}
                for part in topic["partition_data"]
            ],
        }
        for topic in request.values["topic_data"]
    ]
    return {"responses": rows}


def fetch(connection: Connection, request: Request) -> dict[str, Any]:
    return {"responses": []}


def heartbeat(connection: Connection, request: Request) -> dict[str, Any]:
    return {"error_code": 0}


ANSWERS: dict[str, Answer] = {
    "ApiVersions": api_versions,
    "Metadata": metadata,
    "FindCoordinator": find_coordinator,
    "DescribeCluster": describe_cluster,
    "DescribeQuorum": describe_quorum,
    "Produce": produce,
    "Fetch": fetch,
    "Heartbeat": heartbeat,
}
