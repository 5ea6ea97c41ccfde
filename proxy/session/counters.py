"""What is counted, as plain integers in slots: the hot path adds, a scrape takes a snapshot (see metrics.py).

A `RequestCounters` is one (cluster, broker, client, API, version); connections share it. A `TopicCounters`
is one (cluster,
topic, API). Label sets are bounded: beyond the limit a new client or topic is counted as OTHER. Times are
nanoseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any

OTHER = "other"  # clients and topics beyond the bound, or too long
LONGEST = 249  # characters of a label, as of a topic's name in Kafka
UNNAMED = ""  # a client id that is null

# Upper bounds of the latency histograms; the last bucket has none.
MS = 1_000_000
BOUNDS_NS = tuple(
    int(ms * MS)
    for ms in (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
)
# klamm's own time is two orders smaller.
OWN_BOUNDS_NS = tuple(
    int(us * 1000) for us in (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 100_000, 1_000_000)
)


class Histogram:
    """Counts per bucket, one more than bounds, and the sum."""

    __slots__ = ("bounds", "buckets", "total_ns")

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total_ns = 0

    def copy(self) -> Histogram:
        copy = Histogram(self.bounds)
        copy.buckets, copy.total_ns = self.buckets[:], self.total_ns
        return copy

    def add(self, elapsed_ns: int) -> None:
        self.buckets[bisect_left(self.bounds, elapsed_ns)] += 1
        self.total_ns += elapsed_ns


class RequestCounters:
    """One (cluster, broker, client, API, version). `one_way`: requests that expect no response
    (acks=0).
    """

    __slots__ = (
        "api", "broker", "client_id", "cluster", "errors", "latency", "one_way", "own", "own_answers",
        "own_errors", "request_bytes", "requests", "response_bytes", "responses", "version",
    )  # fmt: skip

    def __init__(self, cluster: str, broker: str, client_id: str, api: str, version: int) -> None:
        self.cluster, self.broker, self.client_id = cluster, broker, client_id
        self.api, self.version = api, version
        self.requests = self.responses = self.one_way = self.request_bytes = self.response_bytes = 0
        # from the arrival of a request to the arrival of its response
        self.latency = Histogram(BOUNDS_NS)
        # klamm's own time: of frames that are held whole, and of one in SAMPLE reads (edge/ends.py)
        self.own = Histogram(OWN_BOUNDS_NS)
        self.errors: Counter[int] = Counter()  # Kafka error code -> times, the code 0 left out
        self.own_answers = 0  # made by klamm: the broker did not see the request
        self.own_errors: Counter[int] = Counter()  # in what klamm made or changed

    def copy(self) -> RequestCounters:
        copy = RequestCounters(self.cluster, self.broker, self.client_id, self.api, self.version)
        copy.requests, copy.responses, copy.one_way = self.requests, self.responses, self.one_way
        copy.request_bytes, copy.response_bytes = self.request_bytes, self.response_bytes
        copy.latency, copy.own = self.latency.copy(), self.own.copy()
        if self.errors:
            copy.errors.update(self.errors)
        copy.own_answers = self.own_answers
        if self.own_errors:
            copy.own_errors.update(self.own_errors)
        return copy


class TopicCounters:
    """One (cluster, topic, API): requests that name the topic."""

    __slots__ = ("api", "cluster", "errors", "latency", "requests", "topic")

    def __init__(self, cluster: str, topic: str, api: str) -> None:
        self.cluster, self.topic, self.api = cluster, topic, api
        self.requests = 0
        self.latency = Histogram(BOUNDS_NS)
        self.errors: Counter[int] = Counter()

    def copy(self) -> TopicCounters:
        copy = TopicCounters(self.cluster, self.topic, self.api)
        copy.requests, copy.latency = self.requests, self.latency.copy()
        if self.errors:
            copy.errors.update(self.errors)
        return copy


class Stats:
    """All counters of the process."""

    def __init__(self, max_clients: int = 200, max_topics: int = 200) -> None:
        self.max_clients, self.max_topics = max_clients, max_topics
        self.requests: dict[tuple[str, str, str, str, int], RequestCounters] = {}
        self.topics: dict[tuple[str, str, str], TopicCounters] = {}
        self.clients: set[str] = set()
        self.topic_names: set[tuple[str, str]] = set()
        self.connections: Counter[tuple[str, str]] = Counter()  # (cluster, broker) -> open now
        self.opened: Counter[tuple[str, str]] = Counter()  # (cluster, broker) -> ever
        self.closed: Counter[tuple[str, str]] = Counter()  # (cluster, reason) -> ever
        self.software: Counter[tuple[str, str, str]] = (
            Counter()
        )  # (cluster, name, version) -> connections that said so, ever
        self.problems: Counter[tuple[str, str, str, str]] = (
            Counter()
        )  # (cluster, broker, API or "", kind) -> ever
        self.unanswered: Counter[tuple[str, str, str, str, str]] = (
            Counter()
        )  # (cluster, broker, API, client id, why the connection ended) -> requests, ever

    def of_requests(
        self, cluster: str, broker: str, client_id: str | None, api: str, version: int
    ) -> RequestCounters:
        client = _bounded(client_id or UNNAMED, client_id or UNNAMED, self.clients, self.max_clients)
        key = (cluster, broker, client, api, version)
        counters = self.requests.get(key)
        if counters is None:
            counters = self.requests[key] = RequestCounters(*key)
        return counters

    def of_topic(self, cluster: str, topic: str, api: str) -> TopicCounters:
        name = _bounded((cluster, topic), topic, self.topic_names, self.max_topics)
        key = (cluster, name, api)
        counters = self.topics.get(key)
        if counters is None:
            counters = self.topics[key] = TopicCounters(*key)
        return counters

    def client_software(self, cluster: str, name: str, version: str) -> None:
        key = (cluster, name, version)
        room = len(self.software) < self.max_clients and max(len(name), len(version)) <= LONGEST
        self.software[key if key in self.software or room else (cluster, OTHER, OTHER)] += 1


def _bounded(key: Any, label: str, known: set[Any], most: int) -> str:
    if key in known:
        return label
    if len(known) >= most or len(label) > LONGEST:
        return OTHER
    known.add(key)
    return label
