"""Amounts of traffic, by who asked whom for what: made of counters or of exchanges, and summed up alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, TypeVar

from klamm.dashboards.terminal.window import WAITING
from klamm.dashboards.web.traffic.answers import Latency, Table
from klamm.proxy.session.observing.counters import LONGEST, OTHER

MOST_CELLS = 50_000  # of each kind; beyond them clients count together as OTHER
SPARE = 10_000  # cells for these
MOST_NAMES = 100  # groups, and software, of one client

Node = tuple[str, str]  # cluster and name
Error = tuple[str, str]  # its name, and the end that made it
Key = TypeVar("Key", "Call", "About")


class Call(NamedTuple):
    """Requests of a client to a broker. The client without an id is ""."""

    cluster: str
    client: str
    broker: str
    api: str
    version: int


class About(NamedTuple):
    """Requests about a topic; `client` None: counters do not know it."""

    cluster: str
    client: str | None
    topic: str
    api: str


@dataclass(slots=True)
class Amounts:
    """Sums. `latencies` counts answers by bucket, and `total_s` adds up the times of these."""

    requests: int = 0
    responses: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    errors: dict[Error, int] = field(default_factory=dict)
    latencies: dict[int, int] = field(default_factory=dict)
    total_s: float = 0.0

    def add(self, other: Amounts, timed: bool = True) -> None:
        """`timed` False: without its latencies."""
        self.requests += other.requests
        self.responses += other.responses
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        for error, count in other.errors.items():
            self.errors[error] = self.errors.get(error, 0) + count
        if timed:
            for bucket, count in other.latencies.items():
                self.latencies[bucket] = self.latencies.get(bucket, 0) + count
            self.total_s += other.total_s

    def took(self, bucket: int, seconds: float) -> None:
        """An answer took so long."""
        self.latencies[bucket] = self.latencies.get(bucket, 0) + 1
        self.total_s += seconds

    @property
    def failed(self) -> int:
        return sum(self.errors.values())


def waits(api: str) -> bool:
    """Whether its answers wait in the broker for news: sums of several APIs leave out its latencies."""
    return api in WAITING


class Opened(NamedTuple):
    """A connection of a client; `software` is empty where the client has not named it."""

    number: int
    address: str
    cluster: str
    client: str
    broker: str
    software: str = ""


class Broker(NamedTuple):
    """A broker that the source knows, whether or not there is traffic."""

    at: str
    up: bool | None


class Counting(NamedTuple):
    """How a source counts: the quantile of amounts at a share, and whether it reads bodies, so that it knows
    clients and bytes of topics, and groups of clients.
    """

    quantile: Callable[[Amounts, float], Latency | None]
    bodies: bool


@dataclass(slots=True)
class Cells:
    """All that a source counted in the period."""

    by: Counting
    calls: dict[Call, Amounts] = field(default_factory=dict)
    about: dict[About, Amounts] = field(default_factory=dict)
    opened: list[Opened] = field(default_factory=list)
    brokers: dict[Node, Broker] = field(default_factory=dict)
    software: dict[Node, dict[str, None]] = field(default_factory=dict)  # of clients
    groups: dict[Node, dict[str, None]] = field(default_factory=dict)  # of clients
    notes: dict[Table, str] = field(default_factory=dict)  # what is not counted

    def call(self, call: Call) -> Amounts:
        """The amounts of this cell, or of the one for the rest where there are too many."""
        last = Call(call.cluster, OTHER, OTHER, OTHER, -1)
        return _cell(self.calls, call, call._replace(client=OTHER), last)

    def topic(self, about: About) -> Amounts:
        last = About(about.cluster, OTHER, OTHER, OTHER)
        return _cell(self.about, about, about._replace(client=OTHER), last)

    @property
    def many(self) -> bool:
        """Whether there are several clusters: a node is then told with its own."""
        clusters = {call.cluster for call in self.calls} | {cluster for cluster, _ in self.brokers}
        return len(clusters) > 1


def _cell(cells: dict[Key, Amounts], *keys: Key) -> Amounts:
    """Of the first key that there is, or that there is room for; the last one always has it."""
    for key, most in zip(keys, (MOST_CELLS, MOST_CELLS + SPARE, inf), strict=True):
        found = cells.get(key)
        if found is None and len(cells) < most:
            found = cells[key] = Amounts()
        if found is not None:
            return found
    raise AssertionError


def bounded(name: str) -> str:
    """The name as a label."""
    return name if len(name) <= LONGEST else OTHER


def note(names: dict[Node, dict[str, None]], node: Node, name: str) -> None:
    """Remember a group or a software of a client, while there are few."""
    known = names.get(node)
    if known is None:
        if len(names) >= MOST_CELLS:
            return
        known = names[node] = {}
    if len(known) < MOST_NAMES:
        known[bounded(name)] = None
