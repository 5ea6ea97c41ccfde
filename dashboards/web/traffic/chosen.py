"""The chosen node: its edges, APIs, errors, connections and groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from klamm.dashboards.web.traffic.answers import Asked, Chosen, Kind, Link, OfApi, OfError
from klamm.dashboards.web.traffic.cells import About, Amounts, Call, Cells, Node, Opened
from klamm.dashboards.web.traffic.rows import Tables, Total, in_order, row, summed
from klamm.dashboards.web.traffic.where import both, of_api, of_error, of_node, within
from klamm.decoders.text import valid_text

MOST_EDGES, MOST_APIS, MOST_ERRORS, MOST_LINKS = 300, 100, 100, 50

Cell = Call | About


def chosen(tables: Tables, asked: Asked) -> Chosen | None:
    """None where nothing is chosen, or the source has seen nothing of it."""
    if asked.kind is None:
        return None
    cells, wanted = tables.cells, (asked.cluster, asked.name)
    named = (each for each in tables.of[asked.kind] if (each.cluster, valid_text(each.name)) == wanted)
    total = next(named, None)
    if total is None:
        return None
    node = (total.cluster, total.name)
    whole = Whole(tables, asked.kind, node, asked.where)
    edges = list(whole.edges())
    links = [each for each in cells.opened if whole.has_connection(each)]
    return Chosen(
        row(total, cells.by, within(whole.where, asked.where)),
        [row(each, cells.by, whole.edge(each)) for each in edges[:MOST_EDGES]],
        max(0, len(edges) - MOST_EDGES),
        whole.apis()[:MOST_APIS],
        whole.errors()[:MOST_ERRORS],
        [whole.link(each) for each in links[:MOST_LINKS]],
        max(0, len(links) - MOST_LINKS),
        sorted(cells.groups.get(node, ())) if asked.kind == "client" and cells.by.bodies else None,
        [text for is_so, text in NOTES if is_so(whole, total)],
    )


class Whole:
    """All cells of one node."""

    def __init__(self, tables: Tables, kind: Kind, node: Node, condition: str) -> None:
        self.cells: Cells = tables.cells
        self.kind, self.node, self.condition = kind, node, condition
        self.where = of_node(kind, *node, tables.many)
        cells = tables.cells
        self.calls = [(call, each) for call, each in cells.calls.items() if self._is(call)]
        self.about = [(about, each) for about, each in cells.about.items() if self._is(about)]

    def _is(self, cell: Cell) -> bool:
        return cell.cluster == self.node[0] and getattr(cell, self.kind, None) == self.node[1]

    def has_connection(self, opened: Opened) -> bool:
        return opened.cluster == self.node[0] and getattr(opened, self.kind, None) == self.node[1]

    def edges(self) -> Iterator[Total]:
        """To brokers, topics or clients; those with the most requests first."""
        for kind, sums in self._ends():
            opened = self._opened(kind)
            ends = [
                Total(kind, *end, amounts, opened.get(end))
                for end, amounts in sums.items()
                if amounts.requests or amounts.responses or amounts.errors or opened.get(end)
            ]
            yield from in_order(ends, self.cells.by, "requests")

    def _ends(self) -> Iterator[tuple[Kind, dict[Node, Amounts]]]:
        if self.kind == "client":
            yield "broker", summed(((of.cluster, of.broker), of.api, each) for of, each in self.calls)
            yield "topic", summed(((of.cluster, of.topic), of.api, each) for of, each in self.about)
        elif self.kind == "broker":
            yield "client", summed(((of.cluster, of.client), of.api, each) for of, each in self.calls)
        elif self.cells.by.bodies:
            about = ((of.cluster, of.client or "") for of, _ in self.about)
            yield (
                "client",
                summed((end, of.api, each) for end, (of, each) in zip(about, self.about, strict=True)),
            )

    def _opened(self, kind: Kind) -> Counter[Node]:
        """Connections on each edge; no topic has any."""
        if "topic" in (kind, self.kind):
            return Counter()
        mine = (each for each in self.cells.opened if self.has_connection(each))
        return Counter((each.cluster, getattr(each, kind)) for each in mine)

    def edge(self, end: Total) -> str:
        """The expression for the exchanges on an edge."""
        other = "" if end.kind == "software" else of_node(end.kind, end.cluster, end.name, False)
        return within(both(self.where, other), self.condition)

    def apis(self) -> list[OfApi]:
        """The busiest first."""
        found: dict[tuple[str, int | None], Amounts] = {}
        for api, version, amounts in self._by_api():
            found.setdefault((api, version), Amounts()).add(amounts)
        bytes_known = self.kind != "topic" or self.cells.by.bodies
        busiest = sorted(found.items(), key=lambda pair: (-pair[1].requests, pair[0][0], pair[0][1] or 0))
        return [
            OfApi(
                api,
                version,
                amounts.requests,
                amounts.request_bytes if bytes_known else None,
                amounts.response_bytes if bytes_known else None,
                amounts.failed,
                self.cells.by.quantile(amounts, 0.5),
                self.cells.by.quantile(amounts, 0.99),
                within(both(self.where, of_api(api, version)), self.condition),
            )
            for (api, version), amounts in busiest
            if amounts.requests or amounts.responses or amounts.errors
        ]

    def _by_api(self) -> Iterator[tuple[str, int | None, Amounts]]:
        if self.kind == "topic":
            yield from ((of.api, None, amounts) for of, amounts in self.about)
        else:
            yield from ((of.api, of.version, amounts) for of, amounts in self.calls)

    def errors(self) -> list[OfError]:
        """The most frequent first."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for api, _, amounts in self._by_api():
            for (error, origin), count in amounts.errors.items():
                counts[error, api, origin] += count
        return [
            OfError(
                error,
                api,
                origin,
                count,
                within(both(self.where, of_api(api, None), of_error(error)), self.condition),
            )
            for (error, api, origin), count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
            if count
        ]

    def link(self, opened: Opened) -> Link:
        where = within(f"connection == {opened.number}", self.condition)
        return Link(opened.number, opened.address, opened.client, opened.cluster, opened.broker, where)


UNCOUNTED = (
    "klamm counts only some clients by name, as metrics: clients says; this one is in the client other."
)
NO_CLIENTS = (
    "A running klamm counts the requests, errors and times of a topic, but not its bytes, and not which "
    "clients use it: its exchanges tell that."
)
NO_TOPICS = (
    "A running klamm does not count topics and groups by client: the exchanges of the client tell them."
)
NO_SOFTWARE = (
    "The software is not known: the client named none (ApiVersions 3 or newer) on these connections."
)
REST = "Several clients or topics are counted together here, because there are too many to count each."

NOTES: tuple[tuple[Callable[[Whole, Total], bool], str], ...] = (
    (lambda of, total: total.amounts is None, UNCOUNTED),
    (lambda of, _: not of.where, REST),
    (lambda of, _: of.kind == "topic" and not of.cells.by.bodies, NO_CLIENTS),
    (lambda of, _: of.kind == "client" and not of.cells.by.bodies, NO_TOPICS),
    (lambda of, total: of.kind == "client" and not total.software, NO_SOFTWARE),
)
