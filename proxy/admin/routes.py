"""What the admin API is made of: routes as a table, and what their functions get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from aiohttp import web

from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.config import Config
from klamm.proxy.control.capturing import Captures
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.recorder import Recorder
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.log.events import Events
from klamm.proxy.metrics.snapshot import State


@dataclass(slots=True)
class Control:
    """What the API acts on. `token`: what a caller has to show; None: nothing."""

    state: State
    config: Config
    book: RuleBook
    exchanges: Exchanges
    intercept: Intercept
    captures: Callable[[], Captures]
    proxied: Sequence[Proxied]
    log: Events
    read_only: bool = False
    token: str | None = None
    recorder: Recorder | None = field(default=None)


class Ask(NamedTuple):
    """One request, read. `who`: for the log."""

    request: web.Request
    name: str = ""
    body: Any = None
    query: Any = None
    who: str = ""


Reply = Any  # what is told, as JSON; or a response that is under way
Call = Callable[[Control, Ask], Reply | Awaitable[Reply]]


class Route(NamedTuple):
    """One thing that can be asked. `gives` None: no content. `body` and `query` are types, `refusals` more
    statuses than every route has.
    """

    method: str
    path: str
    call: Call
    summary: str
    gives: Any = None
    status: int = 200
    body: Any = None
    query: Any = None
    refusals: Mapping[int, str] = {}
    streams: bool = False

    @property
    def changes(self) -> bool:
        return self.method != "GET"
