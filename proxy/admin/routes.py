"""The parts of the admin API: routes as rows of tables, and the arguments of their functions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from klamm.proxy.admin.access import Access
from klamm.proxy.admin.listening.json_bodies import JSON
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.config import Config
from klamm.proxy.control.capturing import Captures
from klamm.proxy.control.config_file import ConfigFile
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.process.drain import Drain
from klamm.proxy.control.recorder import Recorder
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.log.audit import Audit
from klamm.proxy.log.events import Events
from klamm.proxy.metrics.snapshot import State
from klamm.proxy.workers.captures import WorkersCaptures
from klamm.proxy.workers.lead import Lead


@dataclass(slots=True)
class Control:
    """The objects that the API acts on. `access`: the callers and their roles. `live`: how many readers
    /v1/live has; `archiving`: somebody reads an archive. `writing`: rules by hand are read one by one;
    `judging`: so are expressions, and the kept exchanges are looked through, since each thread takes time
    from the traffic.
    """

    state: State
    config: Callable[[], Config]
    book: RuleBook
    exchanges: Exchanges
    intercept: Intercept
    captures: Callable[[], Captures | WorkersCaptures]
    proxied: Sequence[Proxied]
    log: Events
    drain: Drain
    config_file: ConfigFile
    access: Access
    read_only: bool = False
    audit: Audit | None = None
    lead: Lead | None = None
    recorder: Recorder | None = field(default=None)
    live: int = 0
    archiving: bool = False
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    judging: asyncio.Lock = field(default_factory=asyncio.Lock)


class Ask(NamedTuple):
    """A request after reading. `who`: the caller's name for the log."""

    request: web.Request
    name: str = ""
    body: Any = None
    query: Any = None
    who: str = ""


Reply = Any  # a value that becomes JSON; or a response whose sending has begun
Call = Callable[[Control, Ask], Reply | Awaitable[Reply]]


class Route(NamedTuple):
    """A method and a path. `gives`: the type of the answer, None for no content. `body`, `query`: types;
    `refusals`: error statuses, besides those that every route has. `streams`: the answer takes as long as it
    is read; `media`: its type. `full`: for the role full only, and audited as a change is. `logged`: what the
    log tells of a body.
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
    media: str = JSON
    full: bool = False
    logged: Callable[[Any], Any] = msgspec.to_builtins

    @property
    def changes(self) -> bool:
        return self.method != "GET"
