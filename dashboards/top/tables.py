"""The tables: their columns, and their rows out of what klamm answered; in any order, and filtered."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from klamm.client.fates import fate_words, unanswered_words
from klamm.client.types import Exchange
from klamm.dashboards.terminal import figures
from klamm.dashboards.terminal.quantiles import Quantile, quantile
from klamm.dashboards.terminal.sections import ALARM, FAINT, Column
from klamm.dashboards.terminal.window import NO_CLIENT_ID, ErrorRow, Row
from klamm.dashboards.top.data import Connections, Data, Seen
from klamm.dashboards.top.state import API, BROKER, CLIENT, CONNECTION, ERROR, EXCHANGE, TOPIC, Order, State
from klamm.decoders.text import printable
from klamm.settings.listing import MOST

WHOSE = 30  # cells of the column
ADDRESS = 47  # cells of the longest address with a port


class Item(NamedTuple):
    """A row. `key` names it as long as it is there; `values` are by the names of fields, None is unknown."""

    key: str
    values: Mapping[str, Any]


class Field(NamedTuple):
    """A column, the name of its value, how that is written, and in which style, where there is anything. What
    is longer than the column gets up to `most` cells where there is room; `fit` writes the values of a row in
    so many.
    """

    column: Column
    name: str
    text: Callable[[Any], str]
    style: str = ""
    most: int = 0
    fit: Callable[[Mapping[str, Any], int], str] | None = None

    def shown(self, item: Item, size: int) -> str:
        """Its text in a row, for a column of so many cells; what is longer is to be cut."""
        value = item.values.get(self.name)
        if value is None:
            return figures.NOTHING
        return self.text(value) if self.fit is None else self.fit(item.values, size)

    @property
    def down(self) -> bool:
        """Whether the largest value comes first."""
        return not self.column.left and self.column.width is not None


class Table(NamedTuple):
    """`title` stands among the others; without an `order` of the user it is sorted by the heading `first`."""

    title: str
    fields: Sequence[Field]
    first: Order
    items: Callable[[Data], list[Item]]
    name: int = 10  # cells that a long name gets at least


def _clock(seconds: float) -> str:
    moment = time.localtime(seconds)
    return f"{time.strftime('%H:%M:%S', moment)}.{int(seconds % 1 * 1000):03}"


def _state(up: bool | None) -> str:
    return {True: "up", False: "DOWN", None: "?"}[up]


def _sized(size_bytes: float | None) -> str:
    return figures.NOTHING if size_bytes is None else figures.size(size_bytes)


def _milliseconds(latency_ms: float | None) -> str:
    return figures.duration(None if latency_ms is None else latency_ms / 1000)


def _named(heading: str) -> Field:
    return Field(Column(heading, None), "name", printable)


RATE = Field(Column("req/s", 7, rank=8), "rate", figures.rate, "bold")
IN = Field(Column("in/s", 7, rank=2), "in", _sized)
OUT = Field(Column("out/s", 7, rank=3), "out", _sized)
P50 = Field(Column("p50", 7, rank=4), "p50", figures.quantile)
P99 = Field(Column("p99", 7, rank=6), "p99", figures.quantile)
ERRORS = Field(Column("err/s", 6, rank=7), "errors", figures.rate, ALARM)
EVER = Field(Column("total", 11, rank=1), "ever", figures.count)

BY_RATE, BY_NAME = Order("req/s"), Order("BROKER")


def _traffic(row: Row, data: Data) -> dict[str, Any]:
    seconds, bounds = data.window.seconds, data.current["bounds_s"]
    return {
        "name": row.name,
        "rate": row.requests / seconds,
        "in": row.request_bytes / seconds,
        "out": row.response_bytes / seconds,
        "p50": quantile(row.buckets, bounds, row.total_s, 0.5),
        "p99": quantile(row.buckets, bounds, row.total_s, 0.99),
        "errors": row.errors / seconds,
        "ever": row.ever,
    }


def _rows(of: Callable[[Data], list[Row]]) -> Callable[[Data], list[Item]]:
    return lambda data: [Item(row.name, _traffic(row, data)) for row in of(data)]


def _brokers(data: Data) -> list[Item]:
    """The brokers with traffic, and the others that klamm knows."""
    many = data.many
    nodes = {
        f"{cluster['name']}/{node['node_id']}" if many else str(node["node_id"]): node
        for cluster in data.current["clusters"]
        for node in cluster["nodes"]
        if node["kind"] == "broker"
    }
    open_now = {
        f"{each['cluster']}/{each['broker']}" if many else each["broker"]: each["open"]
        for each in data.current["connections"]
    }
    rows = {row.name: row for row in data.window.brokers}
    silent = Row("", buckets=[0] * (len(data.current["bounds_s"]) + 1))
    return [
        Item(
            name,
            _traffic(rows.get(name, silent), data)
            | {"name": name, "connections": open_now.get(name, 0)}
            | ({"up": node["up"], "at": node["upstream"]} if (node := nodes.get(name)) else {}),
        )
        for name in dict.fromkeys([*nodes, *rows])
    ]


def _connections(data: Data) -> list[Item]:
    now, before = data.connections, data.connections_before
    return [
        Item(
            str(one.id),
            {
                "name": NO_CLIENT_ID if one.client_id is None else one.client_id,
                "id": one.id,
                "from": one.client,
                "broker": f"{one.cluster}/{one.broker}" if data.many else one.broker,
                "age": max(now.at - one.since, 0.0),
                "in flight": one.in_flight,
                "in": rate(now, before, one.id, "from_client_bytes"),
                "out": rate(now, before, one.id, "to_client_bytes"),
            },
        )
        for one in now.by_id.values()
    ]


def rate(now: Connections, before: Connections, number: int, name: str) -> float | None:
    """Bytes a second of a connection; None where the system does not count them, or it was not there."""
    new = getattr(now.by_id[number], name)
    old = getattr(before.by_id[number], name) if number in before.by_id else None
    if new is None or old is None or now.at <= before.at:
        return None
    return max(0.0, float(new - old)) / (now.at - before.at)


def _whose(row: ErrorRow, size: int) -> str:
    """As many names as there is room for, at least one."""
    texts = [row.whose(most) for most in range(MOST, 0, -1)]
    return next((text for text in texts if cell_len(printable(text)) <= size), texts[-1])


def _errors(data: Data) -> list[Item]:
    return [
        Item(
            f"{row.api} {row.name}",
            {
                "name": row.name,
                "api": row.api,
                "whose": _whose(row, WHOSE),
                "row": row,
                "rate": row.count / data.window.seconds,
                "ever": row.ever,
            },
        )
        for row in data.window.errors
    ]


def _exchanges(data: Data) -> list[Item]:
    return [_exchange(seen) for seen in data.exchanges]


def _exchange(seen: Seen) -> Item:
    number, one = seen
    return Item(
        str(number),
        {
            "name": NO_CLIENT_ID if one.client_id is None else one.client_id,
            "time": one.time,
            "api": f"{one.api} v{one.version}",
            "broker": one.broker,
            "topics": ", ".join(one.topics),
            "bytes": one.request_bytes + (one.response_bytes or 0),
            "latency": one.latency_ms,
            "error": outcome(one),
        },
    )


def outcome(one: Exchange) -> str:
    """Its errors, why it has no answer, whether klamm made or changed the answer, and what else it did."""
    said = ", ".join(f"{times} {name}" if times > 1 else name for name, times in one.errors.items())
    by_klamm = ["(by klamm)"] if one.origin == "klamm" else []
    missing = unanswered_words(one.unanswered, one.waited_ms)
    return " ".join(filter(None, [said, missing, *by_klamm, *fate_words(one.fates)]))


TRAFFIC = (RATE, IN, OUT, P50, P99, ERRORS, EVER)
TABLES: Mapping[str, Table] = {
    API: Table("APIs", (_named("API"), *TRAFFIC), BY_RATE, _rows(lambda data: data.window.apis)),
    CLIENT: Table("Clients", (_named("CLIENT"), *TRAFFIC), BY_RATE, _rows(lambda data: data.window.clients)),
    TOPIC: Table(
        "Topics",
        (_named("TOPIC"), RATE, P50, P99, ERRORS, EVER),
        BY_RATE,
        _rows(lambda data: data.window.topics),
    ),
    BROKER: Table(
        "Brokers",
        (
            _named("BROKER"),
            Field(Column("is", 4, left=True, rank=9), "up", _state),
            Field(Column("at", 21, left=True, rank=1), "at", printable, most=ADDRESS),
            Field(Column("conn", 5, rank=5), "connections", figures.count),
            *TRAFFIC,
        ),
        BY_NAME,
        _brokers,
    ),
    CONNECTION: Table(
        "Connections",
        (
            _named("CLIENT"),
            Field(Column("id", 6, rank=8), "id", str),
            Field(Column("from", 21, left=True, rank=3), "from", printable, most=ADDRESS),
            Field(Column("broker", 9, left=True, rank=7), "broker", printable, most=30),
            Field(Column("for", 8, rank=1), "age", figures.clock),
            Field(Column("flying", 7, rank=2), "in flight", figures.count),
            Field(Column("in/s", 7, rank=5), "in", _sized, "bold"),
            Field(Column("out/s", 7, rank=6), "out", _sized, "bold"),
        ),
        Order("out/s"),
        _connections,
    ),
    ERROR: Table(
        "Errors",
        (
            _named("ERROR"),
            Field(Column("API", 18, left=True, rank=3), "api", str, most=32),
            Field(
                Column("whose", WHOSE, left=True, rank=1),
                "whose",
                printable,
                FAINT,
                most=80,
                fit=lambda values, size: printable(_whose(values["row"], size)),
            ),
            Field(Column("/s", 6, rank=2), "rate", figures.rate, ALARM),
            Field(Column("total", 9, rank=4), "ever", figures.count),
        ),
        Order("/s"),
        _errors,
        name=28,
    ),
    EXCHANGE: Table(
        "Exchanges",
        (
            _named("CLIENT"),
            Field(Column("time", 12, rank=8), "time", _clock),
            Field(Column("API", 16, left=True, rank=9), "api", str, most=32),
            Field(Column("broker", 9, left=True, rank=2), "broker", printable, most=30),
            Field(Column("topics", 16, left=True, rank=1), "topics", printable, most=50),
            Field(Column("bytes", 7, rank=3), "bytes", _sized),
            Field(Column("latency", 8, rank=6), "latency", _milliseconds),
            Field(Column("error", 22, left=True, rank=7), "error", printable, ALARM, most=60),
        ),
        Order("time"),
        _exchanges,
    ),
}


def order_of(state: State) -> Order:
    """The user's, or the usual one."""
    return state.orders.get(state.table, TABLES[state.table].first)


def rows(state: State, data: Data) -> list[Item]:
    """The rows of the table that is shown: filtered, then sorted; unknown values come last."""
    table = TABLES[state.table]
    order = order_of(state)
    found = table.items(data)
    if state.table != EXCHANGE and state.words:
        found = [item for item in found if _has(item, state.words.lower())]
    field = next(each for each in table.fields if each.column.heading == order.heading)
    found.sort(key=lambda item: natural(str(item.values["name"])))
    known = [item for item in found if item.values.get(field.name) is not None]
    unknown = [item for item in found if item.values.get(field.name) is None]
    known.sort(key=lambda item: _comparable(item.values[field.name]), reverse=field.down != order.turned)
    return known + unknown


def _has(item: Item, words: str) -> bool:
    texts: Iterable[Any] = item.values.values()
    return any(isinstance(text, str) and words in text.lower() for text in texts)


def _comparable(value: Any) -> Any:
    if isinstance(value, str):
        return natural(value)
    return value.seconds if isinstance(value, Quantile) else value


def natural(text: str) -> list[tuple[int, str]]:
    """A key by which "billing-10" comes after "billing-9"; digits may be too many for a number."""
    parts = re.split("([0-9]+)", text.lower())
    parts[1::2] = [part.lstrip("0") for part in parts[1::2]]
    return [(len(part) if place % 2 else 0, part) for place, part in enumerate(parts)]
