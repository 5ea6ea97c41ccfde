"""What the admin API is made of: routes as a table, and what their functions get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from aiohttp import web

from klamm.proxy.config import Config
from klamm.proxy.exchanges import Exchanges
from klamm.proxy.intercept import Intercept
from klamm.proxy.log import Level
from klamm.proxy.rule_book import RuleBook
from klamm.proxy.snapshot import State

if TYPE_CHECKING:
    from klamm.proxy.admin_ring import Recorder
    from klamm.proxy.capturing import Captures
    from klamm.proxy.cluster import Proxied


class EventSink(Protocol):
    """What an EventLog does."""

    def event(
        self,
        kind: str,
        message: str,
        level: Level = ...,
        *,
        per: Any = ...,
        each: bool = ...,
        **fields: object,
    ) -> None: ...


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
    log: EventSink
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
