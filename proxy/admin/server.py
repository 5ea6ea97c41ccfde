"""The admin API's HTTP server: metrics, health, counters, and the routes that change things.

Imported only when an HTTP server is wanted: aiohttp takes 12 MB.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.proxy.admin import openapi
from klamm.proxy.admin.api import (
    capture,
    capture_files,
    clusters,
    configuration,
    draining,
    exchanges,
    live,
    paused,
    rules,
)
from klamm.proxy.admin.audited import SENT, auditing
from klamm.proxy.admin.by_workers import BY_WORKERS, REFRESHED
from klamm.proxy.admin.guard import check_full, guard, who
from klamm.proxy.admin.health import PATHS, Health
from klamm.proxy.admin.listening.http_server import HttpServer, listen, problems
from klamm.proxy.admin.listening.json_bodies import answer, encoded, read_body, read_query
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.config_types import Address
from klamm.proxy.control.following import follow
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.log.events import Events
from klamm.proxy.metrics.as_json import counters
from klamm.proxy.metrics.snapshot import Snapshot, State, product_version
from klamm.settings.followed_files import FollowedFiles
from klamm.settings.loopback import is_loopback

PLAIN_TEXT = (
    "tokens of the admin API and the traffic that it shows cross the network in plain text: add "
    "--admin-tls-cert FILE (admin.tls)"
)
INDEX = f"klamm: {PATHS} /v1/counters"

ROUTES: list[Route] = [
    route
    for subject in (rules, paused, capture, capture_files, clusters, configuration, draining, exchanges, live)
    for route in subject.ROUTES
]
ENDLESS = frozenset(route.path for route in ROUTES if route.streams)
MORE = [route.path for route in ROUTES if route.method == "GET" and "{" not in route.path]


async def start(
    state: State, host: str, port: int, control: Control | None = None, tls: FollowedTls | None = None
) -> HttpServer:
    """Serve `state` on host:port; with `control` all routes. Follows the files of TLS and of tokens. Raises
    OSError as `listen` does.
    """
    health = Health(state)
    endpoints = _Endpoints(health, control, is_loopback(host))
    audited = [] if control is None or control.audit is None else [auditing(control.audit)]
    app = web.Application(middlewares=[*audited, problems, endpoints.guarded])
    health.add_to(app)
    app.router.add_get("/", endpoints.index)
    app.router.add_get("/v1/counters", endpoints.counters)
    if control is not None:
        app.router.add_get("/v1/openapi.json", endpoints.openapi)
        for route in ROUTES:
            app.router.add_route(route.method, route.path, partial(_asked, control, route))
    log = None if control is None else control.log
    if control is not None:
        followed: list[FollowedFiles[Any]] = [control.access.tokens, *([] if tls is None else [tls])]
        app.cleanup_ctx.append(partial(_following, followed, control.log))
        if tls is None and not is_loopback(host) and control.access.needs_credentials:
            control.log.event("admin_in_plain_text", PLAIN_TEXT, "warning")
    return await listen(app, Address(host, port), "--admin", ENDLESS, log, tls)


async def _following(
    followed: Sequence[FollowedFiles[Any]], log: Events, _: web.Application
) -> AsyncIterator[None]:
    task = asyncio.create_task(follow(lambda: followed, log))
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _asked(control: Control, route: Route, request: web.Request) -> web.StreamResponse:
    """Answer a request to a route: read its body, call the function, write the answer, log changes. Raises
    Refused.
    """
    if route.full:
        request[SENT] = {}
        check_full(request)
    ask = Ask(
        request,
        request.match_info.get("name", ""),
        await read_body(request, route.body) if route.body is not None else None,
        read_query(request, route.query) if route.query is not None else None,
        who(request),
    )
    if (route.method, route.path) in REFRESHED:
        await control.state.refresh()
    together = BY_WORKERS.get((route.method, route.path))
    if control.lead is not None and together is not None:
        found: Any = together(control.lead, route, ask)
    else:
        found = route.call(control, ask)
    if inspect.isawaitable(found):
        found = await found
    if isinstance(found, web.StreamResponse):
        return found
    if route.changes:
        what = f"{route.method} {request.path}"
        sent = {} if ask.body is None else {"sent": route.logged(ask.body)}
        request[SENT] = sent.get("sent", {})
        control.log.event("changed", f"{what} by {ask.who}", change=what, by=ask.who, **sent)
    return answer(found, route.status)


class _Endpoints:
    def __init__(self, health: Health, control: Control | None, local: bool) -> None:
        self.health, self.control, self.local = health, control, local

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        guard(self.control, request, self.local)
        return await handler(request)

    async def index(self, _: web.Request) -> web.Response:
        more = [*MORE, "/v1/openapi.json"] if self.control is not None else []
        return web.Response(text=" ".join([INDEX, *more]) + "\n")

    async def counters(self, _: web.Request) -> web.Response:
        body = await self.health.rendered("counters", _as_json)
        return web.Response(body=body, content_type="application/json")

    async def openapi(self, _: web.Request) -> web.Response:
        return answer(openapi.document(ROUTES, product_version()))


def _as_json(snapshot: Snapshot) -> bytes:
    return encoded(counters(snapshot))
