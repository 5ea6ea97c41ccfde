"""The admin API's HTTP server: metrics, health, counters, and the routes that change things.

Only what runs with --admin imports this module: aiohttp takes 12 MB.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.proxy.admin import capture as admin_capture
from klamm.proxy.admin import clusters as admin_cluster
from klamm.proxy.admin import exchanges as admin_ring
from klamm.proxy.admin import live as admin_live
from klamm.proxy.admin import openapi
from klamm.proxy.admin import paused as admin_held
from klamm.proxy.admin import rules as admin_rules
from klamm.proxy.admin.guard import guard, who
from klamm.proxy.admin.health import PATHS, Health
from klamm.proxy.admin.http_server import HttpServer, listen, problems
from klamm.proxy.admin.json_bodies import answer, read_body, read_query
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.config import Address
from klamm.proxy.metrics.as_json import counters
from klamm.proxy.metrics.snapshot import State, product_version

INDEX = f"klamm: {PATHS} /v1/counters"

ROUTES: list[Route] = [
    *admin_rules.ROUTES,
    *admin_held.ROUTES,
    *admin_capture.ROUTES,
    *admin_cluster.ROUTES,
    *admin_ring.ROUTES,
    *admin_live.ROUTES,
]
MORE = [route.path for route in ROUTES if route.method == "GET" and "{" not in route.path]


async def start(state: State, host: str, port: int, control: Control | None = None) -> HttpServer:
    """Serve `state` on host:port; with `control` all routes. Raises OSError as `listen` does."""
    health = Health(state)
    endpoints = _Endpoints(health, control)
    app = web.Application(middlewares=[problems, endpoints.guarded])
    health.add_to(app)
    app.router.add_get("/", endpoints.index)
    app.router.add_get("/v1/counters", endpoints.counters)
    if control is not None:
        app.router.add_get("/v1/openapi.json", endpoints.openapi)
        for route in ROUTES:
            app.router.add_route(route.method, route.path, partial(_asked, control, route))
    return await listen(app, Address(host, port), "--admin")


async def _asked(control: Control, route: Route, request: web.Request) -> web.StreamResponse:
    """One route: what was sent is read, what is told is written, what changes is said in the log."""
    ask = Ask(
        request,
        request.match_info.get("name", ""),
        await read_body(request, route.body) if route.body is not None else None,
        read_query(request, route.query) if route.query is not None else None,
        who(request),
    )
    found: Any = route.call(control, ask)
    if inspect.isawaitable(found):
        found = await found
    if isinstance(found, web.StreamResponse):
        return found
    if route.changes:
        what = f"{route.method} {request.path}"
        sent = {} if ask.body is None else {"sent": msgspec.to_builtins(ask.body)}
        control.log.event("changed", f"{what} by {ask.who}", change=what, by=ask.who, **sent)
    return answer(found, route.status)


class _Endpoints:
    def __init__(self, health: Health, control: Control | None) -> None:
        self.health, self.control = health, control

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        guard(self.control, request)
        return await handler(request)

    async def index(self, _: web.Request) -> web.Response:
        more = [*MORE, "/v1/openapi.json"] if self.control is not None else []
        return web.Response(text=" ".join([INDEX, *more]) + "\n")

    async def counters(self, _: web.Request) -> web.Response:
        body = await self.health.rendered(lambda snapshot: msgspec.json.encode(counters(snapshot)))
        return web.Response(body=body, content_type="application/json")

    async def openapi(self, _: web.Request) -> web.Response:
        return answer(openapi.document(ROUTES, product_version()))
