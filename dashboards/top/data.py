"""The answers of klamm for one picture. They stay as they are while the view is frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from klamm.client.types import Connection, Exchange
from klamm.dashboards.terminal.window import Counters, Part, Window, window


class Seen(NamedTuple):
    """An exchange, and its number among those of this view."""

    number: int
    exchange: Exchange


class Connections(NamedTuple):
    """The connections at a time: epoch seconds."""

    at: float = 0.0
    by_id: Mapping[int, Connection] = {}


@dataclass(frozen=True)
class Data:
    """`rates` are past requests a second, oldest first; `left_out` exchanges came too fast to be listed;
    `opened` is the one whose page is shown; `options` lead other commands to the same klamm.
    """

    previous: Counters | None
    current: Counters
    rates: Sequence[float] = ()
    connections: Connections = field(default_factory=Connections)
    connections_before: Connections = field(default_factory=Connections)
    exchanges: Sequence[Seen] = ()
    left_out: int = 0
    opened: Seen | None = None
    options: str = ""

    @cached_property
    def window(self) -> Window:
        """The changes between the previous answer of klamm and this one."""
        return window(self.previous, self.current)

    @property
    def many(self) -> bool:
        """Whether there are several clusters; names then begin with theirs."""
        return len(self.current["clusters"]) > 1

    def part(self, kind: str, name: str) -> Window:
        """The same for what one row is about."""
        return window(self.previous, self.current, Part(kind, name))
