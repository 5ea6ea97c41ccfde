"""The tables: nodes with their sums, searched and sorted, the first of them as rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from klamm.dashboards.top.tables import natural
from klamm.dashboards.web.traffic.answers import Asked, Column, Latency, Row, Table
from klamm.dashboards.web.traffic.cells import Amounts, Cells, Counting, Node, waits
from klamm.dashboards.web.traffic.where import of_node, within

MOST_ROWS = 300  # that a page gets
UP: frozenset[Column] = frozenset({"name", "software"})  # columns whose least value usually comes first


@dataclass(slots=True)
class Total:
    """A node with its sums; `amounts` None: it is there, but the source does not count it alone."""

    kind: Table
    cluster: str
    name: str
    amounts: Amounts | None = None
    connections: int | None = None
    clients: int | None = None
    software: str = ""
    at: str = ""
    up: bool | None = None

    def found(self, search: str) -> bool:
        """Whether any of its texts has these letters."""
        texts = (self.name, self.software, self.at, f"{self.cluster}/{self.name}")
        return any(search in text.lower() for text in texts)


def clients(cells: Cells) -> list[Total]:
    """Clients with traffic, and those that have connections only."""
    opened = Counter((each.cluster, each.client) for each in cells.opened)
    sums = summed(((call.cluster, call.client), call.api, each) for call, each in cells.calls.items())
    found = []
    for node in dict.fromkeys([*sums, *opened]):
        software = ", ".join(cells.software.get(node, ()))
        found.append(Total("client", *node, sums.get(node), opened[node], software=software))
    return found


def brokers(cells: Cells) -> list[Total]:
    """Brokers with traffic, and those that the source knows."""
    opened = Counter((each.cluster, each.broker) for each in cells.opened)
    sums = summed(((call.cluster, call.broker), call.api, each) for call, each in cells.calls.items())
    found = []
    for node in dict.fromkeys([*cells.brokers, *sums, *opened]):
        at, up = cells.brokers.get(node, ("", None))
        found.append(Total("broker", *node, sums.get(node, Amounts()), opened[node], at=at, up=up))
    return found


def topics(cells: Cells) -> list[Total]:
    """Topics that requests named."""
    sums = summed(((about.cluster, about.topic), about.api, each) for about, each in cells.about.items())
    whose: dict[Node, set[str]] = {}
    if cells.by.bodies:
        for about in cells.about:
            whose.setdefault((about.cluster, about.topic), set()).add(about.client or "")
    many = {node: len(names) for node, names in whose.items()}
    return [Total("topic", *node, amounts, clients=many.get(node)) for node, amounts in sums.items()]


def software(cells: Cells) -> list[Total]:
    """The software of clients, as these name it; "" for those that do not."""
    opened = Counter((each.cluster, each.software) for each in cells.opened)
    whose = {((each.cluster, each.software), each.client) for each in cells.opened}
    clients_of = Counter(node for node, _ in whose)
    return [
        Total("software", *node, connections=count, clients=clients_of[node])
        for node, count in opened.items()
    ]


class Tables:
    """The nodes of each table, summed up once."""

    def __init__(self, cells: Cells) -> None:
        self.cells, self.many = cells, cells.many
        self.of: dict[Table, list[Total]] = {
            "client": clients(cells),
            "broker": brokers(cells),
            "topic": topics(cells),
            "software": software(cells),
        }

    def shown(self, asked: Asked) -> tuple[list[Row], int]:
        """The first rows of the asked table, and how many there are after the search."""
        search, by = asked.search.strip().lower(), self.cells.by
        found = [each for each in self.of[asked.table] if not search or each.found(search)]
        first = in_order(found, by, asked.sort, asked.order)[:MOST_ROWS]
        return [row(each, by, within(self.where(each), asked.where)) for each in first], len(found)

    def where(self, of: Total) -> str:
        """The expression for its exchanges."""
        return "" if of.kind == "software" else of_node(of.kind, of.cluster, of.name, self.many)


def summed(of: Iterable[tuple[Node, str, Amounts]]) -> dict[Node, Amounts]:
    """The amounts of each node; latencies of APIs that wait in the broker are left out."""
    found: dict[Node, Amounts] = {}
    for node, api, amounts in of:
        sum_ = found.get(node)
        if sum_ is None:
            sum_ = found[node] = Amounts()
        sum_.add(amounts, timed=not waits(api))
    return found


def in_order(given: list[Total], by: Counting, column: Column, order: str = "") -> list[Total]:
    """By this column: unknown values come last, equal ones by requests, then by name."""
    found = sorted(given, key=lambda each: natural(f"{each.cluster}/{each.name}"))
    found.sort(key=lambda each: each.amounts.requests if each.amounts else -1, reverse=True)
    value = VALUES[column]
    known: list[tuple[Any, Total]] = []
    unknown = []
    for each in found:
        key = value(each, by)
        if key is None or key == "":
            unknown.append(each)
        else:
            known.append((natural(key) if isinstance(key, str) else key, each))
    down = order == "down" if order else column not in UP
    known.sort(key=lambda pair: pair[0], reverse=down)
    return [each for _, each in known] + unknown


def row(of: Total, by: Counting, where: str) -> Row:
    """A total as the page gets it, with the expression for its exchanges."""
    amounts = of.amounts
    given: dict[str, Any] = {}
    if amounts is not None:
        given = {"requests": amounts.requests, "responses": amounts.responses, "errors": amounts.failed}
        given |= {
            "p50": by.quantile(amounts, 0.5),
            "p99": by.quantile(amounts, 0.99),
            "share": share(amounts),
        }
        if of.kind != "topic" or by.bodies:
            given |= {"request_bytes": amounts.request_bytes, "response_bytes": amounts.response_bytes}
    names = ("kind", "cluster", "name", "connections", "clients", "software", "at", "up")
    return Row(**given, **{name: getattr(of, name) for name in names}, where=where)


def share(amounts: Amounts) -> float | None:
    """Errors for each request; None where there was neither."""
    if not amounts.requests and not amounts.failed:
        return None
    return amounts.failed / max(amounts.requests, 1)


def _quantile(at: float) -> Callable[[Total, Counting], float | None]:
    def value(of: Total, by: Counting) -> float | None:
        found: Latency | None = None if of.amounts is None else by.quantile(of.amounts, at)
        return None if found is None else found.ms

    return value


def _amount(read: Callable[[Amounts], float | None]) -> Callable[[Total, Counting], float | None]:
    return lambda of, _: None if of.amounts is None else read(of.amounts)


VALUES: dict[Column, Callable[[Total, Counting], Any]] = {
    "name": lambda of, _: of.name or " ",
    "software": lambda of, _: of.software,
    "requests": _amount(lambda amounts: amounts.requests),
    "request_bytes": _amount(lambda amounts: amounts.request_bytes),
    "response_bytes": _amount(lambda amounts: amounts.response_bytes),
    "errors": _amount(lambda amounts: amounts.failed),
    "share": _amount(share),
    "p50": _quantile(0.5),
    "p99": _quantile(0.99),
    "connections": lambda of, _: of.connections,
    "clients": lambda of, _: of.clients,
}
