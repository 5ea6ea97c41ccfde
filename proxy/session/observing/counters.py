"""Counters, as plain integers in slots: the hot path adds, a scrape copies them (metrics/snapshot.py).

A `RequestCounters` counts one (cluster, broker, client, API, version), a `TopicCounters` one (cluster, topic,
API); connections share them. Label sets are bounded: beyond the limit a new client or topic is counted as
OTHER, until others that nobody uses are forgotten (metrics/expiry.py). Times are nanoseconds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any

from klamm.decoders.text import printable

OTHER = "other"  # clients and topics beyond the bound, or too long
MOST_ROWS = 10_000  # of requests; beyond it only the client `other` gets new ones
MOST_INSTANCES = 10_000  # of clients; more are not counted
LONGEST = 249  # characters of a label; Kafka has the same limit for topic names
UNNAMED = ""  # a client id that is null
ClusterLabel = tuple[str, str]  # (cluster, topic or principal)

# Upper bounds of the latency histograms; the last bucket has none.
MS = 1_000_000
NEVER = 1 << 61  # ns: longer than any time
BOUNDS_NS = tuple(
    int(ms * MS)
    for ms in (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
)
# klamm's own time is two orders smaller.
OWN_BOUNDS_NS = tuple(
    int(us * 1000) for us in (5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 100_000, 1_000_000)
)


class Histogram:
    """Counts per bucket, one more than bounds, and the sum.

    Most values fall into the bucket of the value before. Its bounds, and the times not yet added to the list,
    are attributes, in one cache line.
    """

    __slots__ = ("_above", "_bucket", "_counted", "_times", "_upto", "bounds", "total_ns")

    def __init__(self, bounds: tuple[int, ...]) -> None:
        self.bounds = bounds
        self.total_ns = 0
        self._counted = [0] * (len(bounds) + 1)
        self._above = self._upto = self._bucket = 0  # no value lies between these bounds
        self._times = 0

    @property
    def buckets(self) -> list[int]:
        """How many values are in each bucket, not cumulated."""
        if self._times:
            self._counted[self._bucket] += self._times
            self._times = 0
        return self._counted

    def copy(self) -> Histogram:
        return Histogram(self.bounds).merge(self)

    def merge(self, other: Histogram) -> Histogram:
        """Add the counts of another histogram with the same bounds."""
        self.add_all(other.buckets, other.total_ns)
        return self

    def add_all(self, buckets: list[int], total_ns: int) -> None:
        """Add so many values to each bucket, and their sum."""
        for bucket, times in enumerate(buckets):
            self._counted[bucket] += times
        self.total_ns += total_ns

    def add(self, elapsed_ns: int, times: int = 1) -> None:
        """Count one value, `times` times."""
        if not self._above < elapsed_ns <= self._upto:
            self._turn_to(elapsed_ns)
        self._times += times
        self.total_ns += times * elapsed_ns

    def _turn_to(self, elapsed_ns: int) -> None:
        """Make the bucket of this value the current one."""
        bounds, at = self.bounds, bisect_left(self.bounds, elapsed_ns)
        if self._times:
            self._counted[self._bucket] += self._times
        self._times, self._bucket = 0, at
        self._above = bounds[at - 1] if at else -NEVER
        self._upto = bounds[at] if at < len(bounds) else NEVER


class RequestCounters:
    """Counters of one (cluster, broker, client, API, version). `one_way`: requests that expect no response
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
        self.own_answers = 0  # answers that klamm made: the broker did not see the request
        self.own_errors: Counter[int] = Counter()  # error codes of answers that klamm made or changed

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
    """Counters of one (cluster, topic, API): of requests that name the topic."""

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
        self.topic_names: set[ClusterLabel] = set()
        self.crowded = False  # there was no place for a name
        self.revision = 0  # goes up when names are forgotten: connections then look their counters up again
        self.connections: Counter[tuple[str, str]] = Counter()  # (cluster, broker) -> open now
        self.opened: Counter[tuple[str, str]] = Counter()  # (cluster, broker) -> ever
        self.closed: Counter[tuple[str, str]] = Counter()  # (cluster, reason) -> ever
        self.reauthentications: Counter[tuple[str, str]] = Counter()  # (cluster, broker) -> ever
        self.principals: Counter[tuple[str, str]] = Counter()  # (cluster, principal) -> connections open now
        self.principal_names: set[ClusterLabel] = set()
        self.software: Counter[tuple[str, str, str]] = (
            Counter()
        )  # (cluster, client software, its version) -> connections, ever
        self.instances: Counter[tuple[str, str]] = Counter()  # (cluster, client id) -> instance ids, ever
        self.instance_ids: set[str] = set()
        self.problems: Counter[tuple[str, str, str, str]] = (
            Counter()
        )  # (cluster, broker, API or "", kind) -> ever
        self.logins: Counter[tuple[str, str, str]] = (
            Counter()
        )  # (cluster, SASL mechanism, outcome) -> authentications with klamm, ever
        self.traced: Counter[tuple[str]] = Counter()  # (exported, failed or dropped) -> exchanges, ever
        self.opaque: Counter[tuple[str, str, str]] = (
            Counter()
        )  # (cluster, broker, sender) -> bytes unread, ever
        self.unanswered: Counter[tuple[str, str, str, str, str]] = (
            Counter()
        )  # (cluster, broker, API, client id, why the connection ended) -> requests, ever

    def of_requests(
        self, cluster: str, broker: str, client_id: str | None, api: str, version: int
    ) -> RequestCounters:
        key = (cluster, broker, self._client(client_id), api, version)
        counters = self.requests.get(key)
        if counters is None and len(self.requests) >= MOST_ROWS:
            key = (cluster, broker, OTHER, api, version)
            counters = self.requests.get(key)
        if counters is None:
            counters = self.requests[key] = RequestCounters(*key)
        return counters

    def of_topic(self, cluster: str, topic: str, api: str) -> TopicCounters:
        shown = printable(topic)
        name = self._bounded((cluster, shown), shown, self.topic_names, self.max_topics)
        key = (cluster, name, api)
        counters = self.topics.get(key)
        if counters is None:
            counters = self.topics[key] = TopicCounters(*key)
        return counters

    def client_instance(self, cluster: str, client_id: str | None, instance_id: str) -> None:
        client = self._client(client_id)
        if instance_id not in self.instance_ids and len(self.instance_ids) < MOST_INSTANCES:
            self.instance_ids.add(instance_id)
            self.instances[cluster, client] += 1

    def principal(self, cluster: str, name: str, opened: int) -> None:
        """Count a connection of a principal that opens (1) or ends (-1)."""
        shown = printable(name)
        label = self._bounded((cluster, shown), shown, self.principal_names, self.max_clients)
        self.principals[cluster, label] += opened

    def client_software(self, cluster: str, name: str, version: str) -> str:
        """Count a connection of this software, which is given back as it counts: its name and version."""
        name, version = printable(name), printable(version)
        key = (cluster, name, version)
        room = len(self.software) < self.max_clients and max(len(name), len(version)) <= LONGEST
        key = key if key in self.software or room else (cluster, OTHER, OTHER)
        self.software[key] += 1
        return f"{key[1]} {key[2]}".strip()

    def forget(self, clients: set[str], topics: set[ClusterLabel], principals: set[ClusterLabel]) -> None:
        """Remove all counters of these labels, which gives their places to others."""
        self.revision += 1
        self.crowded = False
        self.clients -= clients
        self.topic_names -= topics
        self.principal_names -= principals
        for key in [key for key in self.requests if key[2] in clients]:
            del self.requests[key]
        for name in [name for name in self.topics if name[:2] in topics]:
            del self.topics[name]
        for principal in principals:
            self.principals.pop(principal, None)
        known = self.clients | {OTHER}
        for instance in [instance for instance in self.instances if instance[1] not in known]:
            del self.instances[instance]
        for unanswered in [unanswered for unanswered in self.unanswered if unanswered[3] not in known]:
            del self.unanswered[unanswered]

    def _client(self, client_id: str | None) -> str:
        shown = printable(client_id or UNNAMED)
        return self._bounded(shown, shown, self.clients, self.max_clients)

    def _bounded(self, key: Any, label: str, known: set[Any], most: int) -> str:
        if key in known:
            return label
        if len(label) > LONGEST:
            return OTHER
        if len(known) >= most:
            self.crowded = True
            return OTHER
        known.add(key)
        return label
