"""The question of the view `traffic`, and its answer, which has one shape for both sources."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Kind = Literal["client", "broker", "topic"]
Table = Literal["client", "broker", "topic", "software"]
Column = Literal[
    "name", "software", "requests", "request_bytes", "response_bytes", "errors", "share", "p50", "p99",
    "connections", "clients",
]  # fmt: skip
Period = Literal["10", "60", "300", "opened", "started"]


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """`page` is a name that a page has made up for itself: a capture is read once for each, and the period
    `opened` begins with its first question. `kind`, `cluster` and `name` are of the chosen node. `period` is
    seconds before now, of a running klamm; `where`, `since` and `until` (seconds since 1970) are of captures.
    """

    page: str = ""
    table: Table = "client"
    sort: Column = "errors"
    order: Literal["", "up", "down"] = ""  # empty: the usual one of the column
    search: str = ""
    kind: Kind | None = None
    cluster: str = ""
    name: str = ""
    period: Period = "10"
    where: str = ""
    since: float | None = None
    until: float | None = None


class Latency(Struct, frozen=True):
    """`sign` is "<" for an upper bound, ">" for a lower one."""

    ms: float
    sign: str = ""


class Row(Struct, frozen=True, omit_defaults=True):
    """A client, broker, topic or software, or the end of an edge, with counts of the period. Absent is
    unknown. `share` is errors for each request. `where` is the expression for its exchanges.
    """

    kind: Table
    cluster: str
    name: str
    requests: int | None = None
    responses: int | None = None
    request_bytes: int | None = None
    response_bytes: int | None = None
    errors: int | None = None
    share: float | None = None
    p50: Latency | None = None
    p99: Latency | None = None
    connections: int | None = None
    clients: int | None = None
    software: str = ""
    at: str = ""  # of a broker: where it is
    up: bool | None = None
    where: str = ""


class OfApi(Struct, frozen=True, omit_defaults=True):
    """An API of the chosen node; `version` is unknown of topics."""

    api: str
    version: int | None
    requests: int
    request_bytes: int | None
    response_bytes: int | None
    errors: int
    p50: Latency | None
    p99: Latency | None
    where: str = ""


class OfError(Struct, frozen=True):
    """An error in answers to the chosen node, or about it. `origin`: the end that made it."""

    error: str
    api: str
    origin: str
    count: int
    where: str


class Link(Struct, frozen=True):
    """A connection of the chosen node."""

    number: int
    client: str
    client_id: str
    cluster: str
    broker: str
    where: str


class Chosen(Struct, frozen=True):
    """The chosen node; `edges` lead to the nodes that it talks to, the busiest first, and `more_edges` are
    left out. `groups` is None where the source does not know them.
    """

    row: Row
    edges: list[Row]
    more_edges: int
    apis: list[OfApi]
    errors: list[OfError]
    links: list[Link]
    more_links: int
    groups: list[str] | None
    notes: list[str]


class Traffic(Struct, frozen=True):
    """`since` and `until` are the bounds of the period. `state`: of captures, whether all was read.
    `counts` has the size of each table, `matching` that of the asked one after the search: `rows` are the
    first of these. `many`: there are several clusters. `exchanges` were read so far, of captures. `notes` say
    what the source cannot know.
    """

    state: Literal["live", "reading", "whole"]
    since: float
    until: float
    seconds: float
    counts: dict[str, int]
    matching: int
    rows: list[Row]
    chosen: Chosen | None = None
    many: bool = False
    exchanges: int = 0
    notes: list[str] = field(default_factory=list)
    problem: str = ""
