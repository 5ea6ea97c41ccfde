"""The lines that a page reads: what was found, as rows of the list or as marks of a timeline."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct, field

from klamm.client.types import Exchange, Fate
from klamm.dashboards.web.columns import Column, cells
from klamm.dashboards.web.source import Cut, Found


class Reads(Protocol):
    """Makes the items of a view from exchanges. `name`: the key of their list in a line of the stream."""

    name: str

    def read(self, key: str, one: Exchange) -> list[Any]:
        """The items of one exchange: none, or some. Exchanges come in the order of their ends."""
        ...

    def cut(self, cut: Cut) -> list[Any]:
        """Exchanges are missing before those that come next: what came before tells nothing of them. The
        items that end there.
        """
        ...


class Row(Struct, frozen=True, omit_defaults=True):
    """A line of the list. `key` finds the exchange again, for as long as the source has it. `rules` acted on
    it; `cells` are the fields that the page has as columns.
    """

    key: str
    time: float
    api: str
    version: int
    client_id: str | None
    cluster: str
    broker: str
    connection_id: int
    origin: str
    request_bytes: int
    response_bytes: int | None
    latency_ms: float | None
    topics: dict[str, list[int]] = field(default_factory=dict)
    group: str | None = None
    errors: dict[str, int] = field(default_factory=dict)
    unanswered: str = ""
    waited_ms: float = 0.0
    undecodable: dict[str, str] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    changed: bool = False
    fates: dict[str, Fate] = field(default_factory=dict)
    cells: list[str] = field(default_factory=list)


class Rows:
    """Each exchange is a row, with a cell for each of the wished fields of bodies."""

    name = "rows"

    def __init__(self, columns: tuple[Column, ...] = ()) -> None:
        self.columns = columns

    def read(self, key: str, one: Exchange) -> list[Row]:
        return [row(key, one, cells(one, self.columns) if self.columns else [])]

    def cut(self, cut: Cut) -> list[Row]:
        return []


def row(key: str, one: Exchange, found: list[str]) -> Row:
    """The line of an exchange. `found`: the cells of its fields."""
    names = Row.__struct_fields__[1:-1]
    told: dict[str, Any] = {name: getattr(one, name) for name in names}
    return Row(key=key, **told, cells=found)


def line(found: Found, reads: Reads) -> dict[str, Any]:
    """A line of the stream, for JSON: the items, and the states that are not empty."""
    items = reads.cut(found.cut) if found.cut else []
    items += [item for key, one in found.exchanges for item in reads.read(key, one)]
    states = {name: getattr(found, name) for name in Found.__struct_fields__[1:] if name != "cut"}
    return {name: value for name, value in ({reads.name: items} | states).items() if value}
