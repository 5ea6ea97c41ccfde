"""The differences between two answers of /v1/counters, by API, client, topic, broker and error.

Latencies of mixed rows (a client, a topic, a broker) leave out the APIs that wait in the broker for news:
their time says how quiet a topic is, not how slow a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from klamm.settings.listing import MOST, some

Counters = Mapping[str, Any]  # the JSON object of /v1/counters

WAITING = frozenset({"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"})
NO_CLIENT_ID = "(no client id)"


@dataclass(slots=True)
class Row:
    """Sums of counters. Counts are of the window, `ever` since the start; `buckets` as in `bounds_s`, and
    `total_s` is the sum of the counted latencies.
    """

    name: str
    requests: int = 0
    responses: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    errors: int = 0
    ever: int = 0
    buckets: list[int] = field(default_factory=list)
    total_s: float = 0.0


@dataclass(slots=True)
class ErrorRow:
    """One Kafka error of one API, the clients that got it, and the topics that it is about, the most frequent
    first.
    """

    name: str
    api: str
    count: int = 0
    ever: int = 0
    clients: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)

    def whose(self, most: int = MOST) -> str:
        """At most so many of the clients and of the topics by name, and the number of the others."""
        return some(self.clients, most) + (f" on {some(self.topics, most)}" if self.topics else "")


@dataclass(frozen=True, slots=True)
class Part:
    """The traffic that one row is about: `kind` is "api", "client_id", "topic" or "broker", and `name` is the
    row's in a window.
    """

    kind: str
    name: str

    def holds(self, each: Counters, many: bool) -> bool:
        """Whether a row of counters belongs to it; one of topics knows no client and no broker."""
        if self.kind not in each:
            return False
        name = each[self.kind] or NO_CLIENT_ID
        return self.name == (name if self.kind == "api" else _named(each, name, many))


@dataclass(slots=True)
class Window:
    """`seconds` is at least a millisecond. Lists are roughly by traffic ever: rows keep their place."""

    seconds: float
    total: Row
    own: Row  # klamm's own time
    apis: list[Row]
    clients: list[Row]
    topics: list[Row]
    brokers: list[Row]
    errors: list[ErrorRow]
    versions: list[Row]  # of APIs; of a part only


class Changes(NamedTuple):
    """Rows of `requests` and `topics` with counts of the time between two answers; `seconds` is at least a
    millisecond.
    """

    seconds: float
    requests: list[dict[str, Any]]
    topics: list[dict[str, Any]]


def window(previous: Counters | None, current: Counters, part: Part | None = None) -> Window:
    """Without a previous answer, or with one of another process, everything since the start. With `part` only
    what belongs to it.
    """
    seconds, requests, topics = changes(previous, current)
    many = len(current["clusters"]) > 1
    if part is not None:
        requests = [each for each in requests if part.holds(each, many)]
        topics = [each for each in topics if part.holds(each, many)]
    counted = topics if part is not None and part.kind == "topic" else requests
    total = _sums(counted, lambda each: "total")
    return Window(
        seconds=seconds,
        total=total[0] if total else Row("total", buckets=[0] * (len(current["bounds_s"]) + 1)),
        own=_own(requests, len(current["own_bounds_s"]) + 1),
        apis=_sums(counted, lambda each: str(each["api"]), waiting=True),
        clients=_sums(requests, lambda each: _named(each, each["client_id"] or NO_CLIENT_ID, many)),
        topics=_sums(topics, lambda each: _named(each, each["topic"], many)),
        brokers=sorted(
            _sums(requests, lambda each: _named(each, each["broker"], many)),
            key=lambda row: _natural(row.name),
        ),
        errors=_errors(requests, topics),
        versions=[]
        if part is None
        else _sums(requests, lambda each: f"{each['api']} v{each['version']}", waiting=True),
    )


def changes(previous: Counters | None, current: Counters) -> Changes:
    """As `window`: its rows before they are summed up."""
    if previous is None or (previous["pid"], previous["started_at"]) != (
        current["pid"],
        current["started_at"],
    ):
        previous = {"requests": [], "topics": [], "now": current["started_at"]}
    requests = list(
        _differences(
            previous["requests"], current["requests"], "cluster", "broker", "api", "version", "client_id"
        )
    )
    topics = list(_differences(previous["topics"], current["topics"], "cluster", "topic", "api"))
    return Changes(max(current["now"] - previous["now"], 0.001), requests, topics)


def _differences(
    before: Iterable[Counters], after: Iterable[Counters], *key: str
) -> Iterable[dict[str, Any]]:
    known = {tuple(each[part] for part in key): each for each in before}
    for each in after:
        old = known.get(tuple(each[part] for part in key), {})
        if old and old["requests"] > each["requests"]:  # it was forgotten meanwhile, and began anew
            old = {}
        difference = {
            name: _minus(value, old.get(name)) if name not in key else value for name, value in each.items()
        }
        yield difference | {"ever": each["requests"], "errors_ever": each["errors"]}


def _minus(new: Any, old: Any) -> Any:
    """Differences of numbers, and of lists and objects of numbers; a missing old value counts as 0."""
    if isinstance(new, list):
        return [a - b for a, b in zip(new, old or [0] * len(new), strict=True)]
    if isinstance(new, dict):
        return {name: _minus(value, (old or {}).get(name)) for name, value in new.items()}
    return new - (old or 0)


def _sums(
    counts: Iterable[Mapping[str, Any]], name: Callable[[Mapping[str, Any]], str], waiting: bool = False
) -> list[Row]:
    rows: dict[str, Row] = {}
    for each in counts:
        row = rows.get(key := name(each))
        if row is None:
            row = rows[key] = Row(key, buckets=[0] * len(each["latency"]["buckets"]))
        row.requests += each["requests"]
        row.ever += each["ever"]
        row.responses += each.get("responses", 0)
        row.request_bytes += each.get("request_bytes", 0)
        row.response_bytes += each.get("response_bytes", 0)
        row.errors += sum(each["errors"].values())
        if waiting or each["api"] not in WAITING:
            _add(row, each["latency"])
    return sorted(rows.values(), key=lambda row: (-row.requests, -row.ever, row.name))


def _own(counts: Iterable[Mapping[str, Any]], size: int) -> Row:
    row = Row("klamm itself", buckets=[0] * size)
    for each in counts:
        _add(row, each["own"])
    return row


def _add(row: Row, histogram: Mapping[str, Any]) -> None:
    row.buckets = [a + b for a, b in zip(row.buckets, histogram["buckets"], strict=True)]
    row.total_s += histogram["sum_s"]


def _errors(requests: Iterable[Mapping[str, Any]], topics: Iterable[Mapping[str, Any]]) -> list[ErrorRow]:
    rows: dict[tuple[str, str], ErrorRow] = {}
    clients: dict[tuple[str, str], Counter[str]] = {}
    named: dict[tuple[str, str], Counter[str]] = {}
    for each in requests:
        for error, times in each["errors_ever"].items():
            key = (error, each["api"])
            row = rows.setdefault(key, ErrorRow(*key))
            row.count += each["errors"].get(error, 0)
            row.ever += times
            clients.setdefault(key, Counter())[each["client_id"] or NO_CLIENT_ID] += times
    for topic in topics:
        for error, times in topic["errors_ever"].items():
            key = (error, topic["api"])
            named.setdefault(key, Counter())[topic["topic"]] += times
            if not requests:  # of a topic, whose requests are known by API only
                row = rows.setdefault(key, ErrorRow(*key))
                row.count += topic["errors"].get(error, 0)
                row.ever += times
    for key, row in rows.items():
        row.clients = [name for name, _ in clients.get(key, Counter()).most_common()]
        row.topics = [name for name, _ in named.get(key, Counter()).most_common()]
    return sorted(rows.values(), key=lambda row: (-row.count, -row.ever, row.name, row.api))


def _named(each: Mapping[str, Any], name: str, many: bool) -> str:
    return f"{each['cluster']}/{name}" if many else name


def _natural(name: str) -> tuple[str, int, str]:
    cluster, _, broker = name.rpartition("/")
    return (cluster, int(broker), "") if broker.lstrip("-").isdigit() else (cluster, 1 << 31, broker)
