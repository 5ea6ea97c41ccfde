"""The changes between two answers of /v1/counters, and the connections of now, as cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from klamm.client.types import Connection
from klamm.dashboards.terminal.quantiles import quantile
from klamm.dashboards.terminal.window import Changes, Counters
from klamm.dashboards.web.traffic.answers import Latency, Table
from klamm.dashboards.web.traffic.cells import (
    About,
    Amounts,
    Broker,
    Call,
    Cells,
    Counting,
    Opened,
    bounded,
    note,
)
from klamm.decoders.text import printable
from klamm.proxy.session.observing.counters import OTHER

HEADER = "klamm reads headers only (metrics: level: header): it counts no topics, and no errors of brokers."
RULED = "Errors that rules made are counted for clients and brokers, not for topics."
SOME_CLIENTS = (
    "klamm counts as many clients by name as metrics: clients says; the rest are together in other."
)
SOME_TOPICS = "klamm counts as many topics by name as metrics: topics says; the rest are together in other."


def of_changes(
    changes: Changes,
    current: Counters,
    connections: Iterable[Connection],
) -> Cells:
    """The amounts of the period. Software, and who has which connection, is that of now."""
    bounds = tuple(current["bounds_s"])

    def latency(amounts: Amounts, share: float) -> Latency | None:
        buckets = [amounts.latencies.get(number, 0) for number in range(len(bounds) + 1)]
        found = quantile(buckets, bounds, amounts.total_s, share)
        return None if found is None else Latency(found.seconds * 1000, found.sign)

    cells = Cells(Counting(latency, bodies=False))
    for each in changes.requests:
        call = Call(each["cluster"], each["client_id"], each["broker"], each["api"], each["version"])
        cells.calls[call] = _amounts(each)
    for each in changes.topics:
        cells.about[About(each["cluster"], None, each["topic"], each["api"])] = _amounts(each)
    for cluster in current["clusters"]:
        for node in cluster["nodes"]:
            name = str(node["node_id"]) if node["kind"] == "broker" else f"controller {node['node_id']}"
            cells.brokers[cluster["name"], name] = Broker(node["upstream"], node["up"])
    for one in connections:
        client = bounded(printable(one.client_id or ""))
        cells.opened.append(Opened(one.id, one.client, one.cluster, client, one.broker, one.software))
        if one.software:
            note(cells.software, (one.cluster, client), one.software)
    cells.notes.update(_notes(current, cells))
    return cells


def _amounts(each: Mapping[str, Any]) -> Amounts:
    """Nothing is negative, also where klamm has begun anew to count."""
    requests, responses, sent, got = (
        max(0, each.get(name, 0)) for name in ("requests", "responses", "request_bytes", "response_bytes")
    )
    latency = each["latency"]
    errors = {
        (name, origin): count
        for field, origin in (("errors", "broker"), ("own_errors", "klamm"))
        for name, count in each.get(field, {}).items()
        if count > 0
    }
    buckets = {number: times for number, times in enumerate(latency["buckets"]) if times > 0}
    return Amounts(requests, responses, sent, got, errors, buckets, max(0.0, latency["sum_s"]))


def _notes(current: Counters, cells: Cells) -> Iterator[tuple[Table, str]]:
    if current["metering"] == "header":
        yield "topic", HEADER
    elif any(about.topic == OTHER for about in cells.about):
        yield "topic", SOME_TOPICS
    elif any(origin == "klamm" for each in cells.calls.values() for _, origin in each.errors):
        yield "topic", RULED
    if any(call.client == OTHER for call in cells.calls):
        yield "client", SOME_CLIENTS
