"""Pages in the place of a table: what is behind a row, the overview, and the help."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from shlex import quote
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from klamm.client.types import Connection, Exchange
from klamm.dashboards.terminal import figures, sections
from klamm.dashboards.terminal.quantiles import quantile
from klamm.dashboards.terminal.sections import ALARM, FAINT, HEADING, Draw
from klamm.dashboards.terminal.window import NO_CLIENT_ID, Counters, Window
from klamm.dashboards.top.data import Data
from klamm.dashboards.top.expressions import of_row
from klamm.dashboards.top.state import (
    API,
    BINDINGS,
    BROKER,
    CLIENT,
    CONNECTION,
    EXCHANGE,
    HELP,
    OVERVIEW,
    TOPIC,
    State,
)
from klamm.dashboards.top.tables import outcome, rate
from klamm.decoders.text import printable

PARTS: Mapping[str, tuple[Draw, ...]] = {
    API: (sections.versions, sections.clients, sections.topics, sections.brokers, sections.errors),
    CLIENT: (sections.versions, sections.brokers, sections.errors),
    TOPIC: (sections.apis, sections.errors),
    BROKER: (sections.apis, sections.clients, sections.errors),
}
NAMES = {API: "API", CLIENT: "client", TOPIC: "topic", BROKER: "broker"}
ALL = 1 << 20  # rows of a page, which scrolls

Facts = Iterable[tuple[str, str]]


def page(state: State, data: Data) -> RenderableType:
    """All of the page, however long it is."""
    if state.page == HELP:
        return _help()
    if state.page == OVERVIEW:
        return _overview(data)
    key = state.detail or ""
    if state.table == CONNECTION:
        return _connection(key, data)
    return _exchange(key, data) if state.table == EXCHANGE else _part(state.table, key, data)


def _part(table: str, key: str, data: Data) -> RenderableType:
    found = data.part(table, key)
    lines: list[RenderableType] = [_title(NAMES[table], key), _sums(found, data.current)]
    for draw in PARTS[table]:
        section = draw(found, data.current)
        lines += [Text(), _Whole(section)]
    if table in (CLIENT, BROKER):
        lines += [Text(), _connections_of(table, key, data)]
    where = of_row(table, key, data.many)
    return Group(*lines, Text(), _listing(where, data))


class _Whole:
    """A section with all of its rows, as wide as the screen."""

    def __init__(self, section: sections.Section) -> None:
        self.section = section

    def __rich_console__(self, _: Any, options: Any) -> Iterable[RenderableType]:
        yield self.section.table(ALL, options.max_width)


def _sums(found: Window, current: Counters) -> Text:
    total, seconds = found.total, found.seconds
    p50, p99 = (
        figures.quantile(quantile(total.buckets, current["bounds_s"], total.total_s, share))
        for share in (0.5, 0.99)
    )
    parts = [
        f"{figures.rate(total.requests / seconds)} req/s",
        f"p50 {p50}",
        f"p99 {p99}",
        f"{figures.rate(total.errors / seconds)} err/s",
        f"{figures.count(total.ever)} since klamm's start",
    ]
    return Text("  ".join(parts))


def _connections_of(table: str, key: str, data: Data) -> RenderableType:
    now = data.connections

    def name(one: Connection) -> str:
        plain = one.broker if table == BROKER else NO_CLIENT_ID if one.client_id is None else one.client_id
        return f"{one.cluster}/{plain}" if data.many else plain

    of = [one for one in now.by_id.values() if name(one) == key]
    heads = ("CONNECTION", "from", "client id" if table == BROKER else "broker", "for", "in flight")
    rows = [
        (
            str(one.id),
            printable(one.client),
            printable(one.client_id or "" if table == BROKER else one.broker),
            figures.clock(max(now.at - one.since, 0)),
            str(one.in_flight),
        )
        for one in sorted(of, key=lambda one: one.id)
    ]
    return _table(heads, rows or [("none",)])


def _connection(key: str, data: Data) -> RenderableType:
    now, before = data.connections, data.connections_before
    one = now.by_id.get(int(key))
    if one is None:
        return Group(_title("connection", key), Text(), Text("It is closed.", ALARM))
    facts = [
        ("client", one.client),
        ("client id", NO_CLIENT_ID if one.client_id is None else one.client_id),
        ("principal", one.principal or figures.NOTHING),
        ("cluster", one.cluster),
        ("broker", one.broker),
        ("open for", figures.clock(max(now.at - one.since, 0))),
        ("in flight", f"{one.in_flight} requests"),
    ]
    for name, field in (("sent", "from_client_bytes"), ("received", "to_client_bytes")):
        count, speed = getattr(one, field), rate(now, before, one.id, field)
        said = "not told by the system" if count is None else figures.size(count)
        facts.append((name, said if not speed else f"{said}, {figures.size(speed)}/s"))
    hint = _listing(of_row(CONNECTION, key, data.many), data)
    return Group(_title("connection", key), Text(), _facts(facts), Text(), hint)


def _exchange(key: str, data: Data) -> RenderableType:
    kept = data.exchanges if data.opened is None else (data.opened, *data.exchanges)
    one = next((seen.exchange for seen in kept if str(seen.number) == key), None)
    if one is None:
        return Group(_title("exchange", key), Text(), Text("It is kept no more.", ALARM))
    topics = ", ".join(f"{name}{partitions}" for name, partitions in one.topics.items())
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.time)) + f".{int(one.time % 1 * 1000):03}"
    facts = [
        ("time", moment),
        ("API", f"{one.api} v{one.version}"),
        ("client id", NO_CLIENT_ID if one.client_id is None else one.client_id),
        ("connection", f"{one.connection_id}, from {one.connection}"),
        ("principal", one.principal or figures.NOTHING),
        ("cluster", one.cluster),
        ("broker", one.broker),
        ("group", one.group or figures.NOTHING),
        ("transactional id", one.transactional_id or figures.NOTHING),
        ("topics", topics or figures.NOTHING),
        ("request", f"{one.request_bytes:,} bytes"),
        ("response", _response(one)),
        ("latency", figures.duration(None if one.latency_ms is None else one.latency_ms / 1000)),
        ("errors", outcome(one) or "none"),
        ("answered by", _answered_by(one)),
    ]
    where = of_row(CONNECTION, str(one.connection_id), data.many)
    hint = _hint(f"its fields and bytes, as more come: klamm tail -v {quote(where)}{data.options}")
    return Group(_title("exchange", f"{one.api} v{one.version}"), Text(), _facts(facts), Text(), hint)


def _response(one: Exchange) -> str:
    return "none" if one.response_bytes is None else f"{one.response_bytes:,} bytes"


def _answered_by(one: Exchange) -> str:
    if one.response_bytes is None:
        return figures.NOTHING
    return "broker, changed by klamm" if one.changed else one.origin


def _overview(data: Data) -> RenderableType:
    current = data.current
    lines: list[RenderableType] = []
    for cluster in current["clusters"]:
        title = _title("cluster", cluster["name"])
        title.append(f"  {cluster['state']}", "green" if cluster["state"] == "ready" else ALARM)
        title.append(f"  {cluster['cluster_id'] or ''}  clients: {cluster['listening']}", FAINT)
        lines.append(title)
        if not cluster["ready"]:
            lines.append(Text(printable(cluster["reason"]), ALARM))
        rows = [
            (
                f"{node['kind']} {node['node_id']}",
                {True: "up", False: "DOWN", None: "?"}[node["up"]],
                printable(node["upstream"]),
                printable(node["listening"] or node["unbound"]),
            )
            for node in cluster["nodes"]
        ]
        lines += [_table(("NODE", "is", "at", "clients are told"), rows), Text()]
    for draw in (sections.software, sections.problems):
        lines += [_Whole(draw(data.window, current)), Text()]
    counts, capture = current["rule_counts"], current["capture"]
    workers = current["workers"]
    facts = [
        ("rules", f"{counts['file']} of files, {counts['hand']} by hand"),
        ("frames paused", str(current["frames_paused"])),
        ("capture", "none" if capture is None else printable(str(capture.get("name", "")))),
        ("metering", current["metering"]),
        ("processes", f"{workers['serving']}, {workers['died']} died; pid {current['pid']}"),
    ]
    return Group(*lines, _facts(facts))


def _help() -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    for keys, _, words in BINDINGS:
        shown = ", ".join("space" if key == " " else key for key in keys)
        table.add_row(Text(shown, "bold"), Text(words))
    notes = (
        "Rates and latencies are of klamm's last six answers. Latencies of clients, topics and brokers",
        "leave out long polls (Fetch, ShareFetch, JoinGroup, SyncGroup).",
        "Totals, and the connections of client software, count since klamm began.",
        "Exchanges are asked for while their table is shown, and at no other time.",
    )
    return Group(Text("KEYS", HEADING), table, Text(), *(Text(note, FAINT, no_wrap=False) for note in notes))


def _title(kind: str, name: str) -> Text:
    text = Text(f"{kind} ", HEADING)
    return text.append(printable(name), "bold")


def _hint(words: str) -> Text:
    return Text(printable(words), FAINT)


def _listing(where: str, data: Data) -> Text:
    return _hint(f"x lists its exchanges: klamm tail {quote(where)}{data.options}")


def _facts(facts: Facts) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for name, value in facts:
        table.add_row(Text(name, FAINT), Text(printable(value), overflow="fold"))
    return table


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in heads:
        table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_row(*(Text(head, FAINT if place else HEADING) for place, head in enumerate(heads)))
    for row in rows:
        table.add_row(*(Text(cell, ALARM if cell == "DOWN" else "") for cell in row))
    return table
