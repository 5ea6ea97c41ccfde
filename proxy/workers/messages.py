"""The messages between the lead and its workers, besides plain values."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Sequence
from typing import Any, NamedTuple

from klamm.client.types import Capture
from klamm.proxy.config import Config
from klamm.proxy.metrics.summing import Taken
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.proxy.workers.channel import SIZE
from klamm.rules.groups import Client


class Boot(NamedTuple):
    """The settings of a worker. `seed`, `wall_offset_ns`: those of the lead's rules."""

    slot: int
    config: Config
    seed: int
    wall_offset_ns: int


class Accepted(NamedTuple):
    """A connection that the lead has accepted; its socket comes with it. `target`: the node of its port."""

    cluster: str
    target: NodeKey | None
    number: int
    since: float
    peer: tuple[str, int]


class NodeAt(NamedTuple):
    """A node of a cluster; the fields are those of topology.Node."""

    key: NodeKey
    host: str
    port: int
    listen_port: int | None
    failure: str | None


class Nodes(NamedTuple):
    """A cluster as the lead knows it. `remembered`: nodes of the run before. `let_in`: clients may come."""

    cluster_id: str | None
    bootstrap_port: int
    let_in: bool
    nodes: list[NodeAt]
    remembered: list[NodeAt]


class Learned(NamedTuple):
    """Addresses, and names of topic ids, that a process has learned from the answers of brokers."""

    nodes: list[tuple[NodeKey, str, int]]
    topics: list[tuple[bytes, str]]


class Part(NamedTuple):
    """The part of one worker in the state of klamm. `in_flight`: by (cluster, broker). `rules`: matches,
    hits, failures and the time of the first match (ns, or None), by (name, start of its counts).
    """

    counters: Taken
    in_flight: dict[tuple[str, str], int]
    rules: dict[tuple[str, int], tuple[int, int, int, int | None]]
    frames_paused: int
    log_dropped: int
    audit_dropped: int
    capture: Capture | None
    usage: dict[str, float]


Groups = list[tuple[Client, str]]  # groups that clients have named


class Lost(NamedTuple):
    """Exchanges that a reader of /v1/live lost: how many, and when the first and the last of them ended."""

    dropped: int
    since: float
    until: float


class Lines(NamedTuple):
    """Exchanges for a reader of /v1/live. `lost` tells of those behind them, `unjudged` frames took too much
    work to judge; `took_s`: the time of the loop for them.
    """

    lines: Sequence[bytes] = ()
    lost: Lost | None = None
    unjudged: int = 0
    took_s: float = 0.0


def send_first(sock: socket.socket, message: Any) -> None:
    """Send the message that a worker waits for before all others. It may block."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    sock.sendall(SIZE.pack(len(data)) + data)


def receive_first(sock: socket.socket) -> Any:
    """Wait for it. Raises EOFError if the other end has gone."""
    (size,) = SIZE.unpack(_exactly(sock, SIZE.size))
    return pickle.loads(_exactly(sock, size))


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data
