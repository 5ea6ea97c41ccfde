"""Routes that workers answer: the request goes to those that can, and their answers become one.

A paused frame or a kept exchange has a number of its worker's; outside, it is that number and the worker's
place.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from klamm.client.types import Connection, Exchange, Exchanges, PausedFrame
from klamm.proxy.admin.routes import Ask, Route
from klamm.proxy.config import MOST_WORKERS
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.workers.channel import Ended, Failed
from klamm.proxy.workers.lead import Lead
from klamm.proxy.workers.processes import Worker

Together = Callable[[Lead, Route, Ask], Awaitable[Any]]


async def _each(lead: Lead, route: Route, ask: Ask) -> list[tuple[Worker, Any]]:
    return await lead.workers.ask("route", route.method, route.path, ask.name, ask.body, ask.query, ask.who)


async def _connections(lead: Lead, route: Route, ask: Ask) -> list[Connection]:
    found = [one for _, part in await _each(lead, route, ask) for one in part]
    return sorted(found, key=attrgetter("id"))


async def _close(lead: Lead, route: Route, ask: Ask) -> None:
    """By the worker that has the connection."""
    number = int(ask.name) if ask.name.isascii() and ask.name.isdigit() else 0
    for worker in lead.workers.ready:
        if number in worker.connections:
            await _one(worker, route, ask, ask.name)
            return
    raise Refused(404, f"there is no connection {ask.name!r}")


async def _paused(lead: Lead, route: Route, ask: Ask) -> list[PausedFrame]:
    found = [_outside(worker, one) for worker, part in await _each(lead, route, ask) for one in part]
    return sorted(found, key=attrgetter("since"))


async def _newest(lead: Lead, route: Route, ask: Ask) -> Exchanges:
    parts = [(worker, part) for worker, part in await _each(lead, route, ask)]
    found: list[Exchange] = [_outside(worker, one) for worker, part in parts for one in part.exchanges]
    newest = sorted(found, key=attrgetter("time"))[-ask.query.limit :]
    since = max((part.since for _, part in parts), default=0.0)
    return Exchanges(
        since, all(part.bodies for _, part in parts), newest, sum(part.unjudged for _, part in parts)
    )


async def _numbered(lead: Lead, route: Route, ask: Ask) -> Any:
    """By the worker whose number it is."""
    number = int(ask.name) if ask.name.isascii() and ask.name.isdigit() and len(ask.name) < 19 else 0
    inside, slot = divmod(number, MOST_WORKERS)
    worker = lead.workers.now.get(slot)
    if worker is None or not worker.ready.is_set():
        raise Refused(404, f"there is no {ask.name[:30]!r} (any more)")
    found = await _one(worker, route, ask, str(inside))
    return None if found is None else _outside(worker, found)


async def _one(worker: Worker, route: Route, ask: Ask, name: str) -> Any:
    try:
        return await worker.channel.ask("route", route.method, route.path, name, ask.body, ask.query, ask.who)
    except Ended:
        raise Refused(404, "its worker has died") from None
    except Failed as wrong:
        raise Refused(500, f"worker {worker.slot + 1}: {wrong}") from None


def _outside(worker: Worker, found: Any) -> Any:
    return replace(found, id=found.id * MOST_WORKERS + worker.slot)


BY_WORKERS: Mapping[tuple[str, str], Together] = {
    ("GET", "/v1/connections"): _connections,
    ("DELETE", "/v1/connections/{name}"): _close,
    ("GET", "/v1/paused"): _paused,
    ("GET", "/v1/paused/{name}"): _numbered,
    ("POST", "/v1/paused/{name}"): _numbered,
    ("GET", "/v1/exchanges"): _newest,
    ("GET", "/v1/exchanges/{name}"): _numbered,
}
REFRESHED = frozenset({("GET", "/v1/rules"), ("GET", "/v1/rules/{name}")})
"""Routes of the lead that tell counts of the workers."""
