"""What happened between two answers of /v1/counters, by API, client, topic, broker and error.

Latencies of mixed rows (a client, a topic, a broker) leave out the APIs that wait in the broker for news:
their time says how quiet a topic is, not how slow a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Counters = Mapping[str, Any]  # the JSON object of /v1/counters

WAITING = frozenset({"Fetch", "ShareFetch", "JoinGroup", "SyncGroup"})
ERROR_PARTS = 3  # clients and topics named beside an error


@dataclass(slots=True)
class Row:
    """Sums over some lanes. Counts are of the window, `ever` since the start; `buckets` as in `bounds_s`, and
    `total_s` is the sum of what is counted in them.
    """

    name: str
    requests: int = 0
    responses: int = 0
    request_bytes: int = 0
    response_bytes: int = 0
    errors: int = 0
    ever: int = 0
    errors_ever: int = 0
    buckets: list[int] = field(default_factory=list)
    total_s: float = 0.0


@dataclass(slots=True)
class ErrorRow:
    """One Kafka error of one API, and who met it."""

    name: str
    api: str
    count: int = 0
    ever: int = 0
    clients: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)


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


def window(previous: Counters | None, current: Counters) -> Window:
    """Without a previous answer, or with one of another process, everything since the start."""
    if previous is None or (previous["pid"], previous["started_at"]) != (
        current["pid"],
        current["started_at"],
    ):
        previous = {"lanes": [], "topics": [], "now": current["started_at"]}
    many = len(current["clusters"]) > 1
    lanes = list(
        _differences(previous["lanes"], current["lanes"], "cluster", "broker", "api", "version", "client_id")
    )
    topics = list(_differences(previous["topics"], current["topics"], "cluster", "topic", "api"))
    total = _sums(lanes, lambda lane: "total")
    return Window(
        seconds=max(current["now"] - previous["now"], 0.001),
        total=total[0] if total else Row("total", buckets=[0] * (len(current["bounds_s"]) + 1)),
        own=_own(lanes, len(current["own_bounds_s"]) + 1),
        apis=_sums(lanes, lambda lane: str(lane["api"]), waiting=True),
        clients=_sums(lanes, lambda lane: _named(lane, lane["client_id"] or "(no client id)", many)),
        topics=_sums(topics, lambda lane: _named(lane, lane["topic"], many)),
        brokers=sorted(
            _sums(lanes, lambda lane: _named(lane, lane["broker"], many)), key=lambda row: _natural(row.name)
        ),
        errors=_errors(lanes, topics),
    )


def _differences(
    before: Iterable[Counters], after: Iterable[Counters], *key: str
) -> Iterable[dict[str, Any]]:
    known = {tuple(lane[part] for part in key): lane for lane in before}
    for lane in after:
        old = known.get(tuple(lane[part] for part in key), {})
        difference = {
            name: _minus(value, old.get(name)) if name not in key else value for name, value in lane.items()
        }
        yield difference | {"ever": lane["requests"], "errors_ever": lane["errors"]}


def _minus(new: Any, old: Any) -> Any:
    """Numbers, lists and objects of numbers; what was not there before counts from nothing."""
    if isinstance(new, list):
        return [a - b for a, b in zip(new, old or [0] * len(new), strict=True)]
    if isinstance(new, dict):
        return {name: _minus(value, (old or {}).get(name)) for name, value in new.items()}
    return new - (old or 0)


def _sums(
    lanes: Iterable[Mapping[str, Any]], name: Callable[[Mapping[str, Any]], str], waiting: bool = False
) -> list[Row]:
    rows: dict[str, Row] = {}
    for lane in lanes:
        row = rows.get(key := name(lane))
        if row is None:
            row = rows[key] = Row(key, buckets=[0] * len(lane["latency"]["buckets"]))
        row.requests += lane["requests"]
        row.ever += lane["ever"]
        row.responses += lane.get("responses", 0)
        row.request_bytes += lane.get("request_bytes", 0)
        row.response_bytes += lane.get("response_bytes", 0)
        row.errors += sum(lane["errors"].values())
        row.errors_ever += sum(lane["errors_ever"].values())
        if waiting or lane["api"] not in WAITING:
            _add(row, lane["latency"])
    return sorted(rows.values(), key=lambda row: (-row.requests, -row.ever, row.name))


def _own(lanes: Iterable[Mapping[str, Any]], size: int) -> Row:
    row = Row("klamm itself", buckets=[0] * size)
    for lane in lanes:
        _add(row, lane["own"])
    return row


def _add(row: Row, histogram: Mapping[str, Any]) -> None:
    row.buckets = [a + b for a, b in zip(row.buckets, histogram["buckets"], strict=True)]
    row.total_s += histogram["sum_s"]


def _errors(lanes: Iterable[Mapping[str, Any]], topics: Iterable[Mapping[str, Any]]) -> list[ErrorRow]:
    rows: dict[tuple[str, str], ErrorRow] = {}
    clients: dict[tuple[str, str], Counter[str]] = {}
    named: dict[tuple[str, str], Counter[str]] = {}
    for lane in lanes:
        for error, times in lane["errors_ever"].items():
            key = (error, lane["api"])
            row = rows.setdefault(key, ErrorRow(*key))
            row.count += lane["errors"].get(error, 0)
            row.ever += times
            clients.setdefault(key, Counter())[lane["client_id"] or "(no client id)"] += times
    for topic in topics:
        for error, times in topic["errors_ever"].items():
            named.setdefault((error, topic["api"]), Counter())[topic["topic"]] += times
    for key, row in rows.items():
        row.clients = [name for name, _ in clients[key].most_common(ERROR_PARTS)]
        row.topics = [name for name, _ in named.get(key, Counter()).most_common(ERROR_PARTS)]
    return sorted(rows.values(), key=lambda row: (-row.count, -row.ever, row.name, row.api))


def _named(lane: Mapping[str, Any], name: str, many: bool) -> str:
    return f"{lane['cluster']}/{name}" if many else name


def _natural(name: str) -> tuple[str, int, str]:
    cluster, _, broker = name.rpartition("/")
    return (cluster, int(broker), "") if broker.lstrip("-").isdigit() else (cluster, 1 << 31, broker)
