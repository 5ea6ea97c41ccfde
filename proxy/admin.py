"""The HTTP server on the proxy's own loop: metrics, health, counters, and the routes that change things.

Only what runs with --admin imports this module: aiohttp takes 12 MB.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.proxy import admin_capture, admin_cluster, admin_held, admin_live, admin_ring, admin_rules, openapi
from klamm.proxy.admin_guard import guard, who
from klamm.proxy.admin_json import answer, read_body, read_query, refusal
from klamm.proxy.admin_routes import Ask, Control, Route
from klamm.proxy.config import Address
from klamm.proxy.counters import counters
from klamm.proxy.discovery import why_not_bound
from klamm.proxy.metrics import render
from klamm.proxy.rule_book import Refused
from klamm.proxy.snapshot import Snapshot, State, product_version, take

INDEX = "klamm: /metrics /healthz /readyz /v1/counters"

ROUTES: list[Route] = [
    *admin_rules.ROUTES,
    *admin_held.ROUTES,
    *admin_capture.ROUTES,
    *admin_cluster.ROUTES,
    *admin_ring.ROUTES,
    *admin_live.ROUTES,
]
MORE = [route.path for route in ROUTES if route.method == "GET" and "{" not in route.path]

T = TypeVar("T")


class Admin:
    """A running server. `address` holds the port that was taken where 0 was asked for."""

    def __init__(self, runner: web.AppRunner, endpoints: _Endpoints, address: Address) -> None:
        self._runner, self._endpoints, self.address = runner, endpoints, address

    async def close(self) -> None:
        """Stops listening and ends what is open."""
        await self._runner.cleanup()
        self._endpoints.thread.shutdown()


async def start(state: State, host: str, port: int, control: Control | None = None) -> Admin:
    """Serve `state` on host:port; with `control` all routes. OSError, with a text for people in `strerror`,
    if that cannot be had.
    """
    endpoints = _Endpoints(state, control)
    app = web.Application(middlewares=[endpoints.guarded])
    app.router.add_get("/", endpoints.index)
    app.router.add_get("/healthz", endpoints.healthz)
    app.router.add_get("/readyz", endpoints.readyz)
    app.router.add_get("/metrics", endpoints.metrics)
    app.router.add_get("/v1/counters", endpoints.counters)
    if control is not None:
        app.router.add_get("/v1/openapi.json", endpoints.openapi)
        for route in ROUTES:
            app.router.add_route(route.method, route.path, partial(_asked, control, route))
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
    except OSError as error:
        await runner.cleanup()
        endpoints.thread.shutdown()
        where = f"cannot listen on {Address(host, port)}: {why_not_bound(error)}"
        reason = f"{where}; choose another with --admin HOST:PORT"
        raise OSError(error.errno, reason) from error
    return Admin(runner, endpoints, Address(host, runner.addresses[0][1]))


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
    def __init__(self, state: State, control: Control | None) -> None:
        self.state, self.control = state, control
        self.thread = ThreadPoolExecutor(1, "admin")  # one: scrapes that come together wait for each other

    @web.middleware
    async def guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Whatever is refused is a Problem."""
        try:
            guard(self.control, request)
            return await handler(request)
        except Refused as no:
            headers = {"WWW-Authenticate": "Bearer"} if no.status == 401 else {}
            response = refusal(no.status, str(no), no.mistakes)
            response.headers.update(headers)
            return response
        except web.HTTPException as no:
            response = refusal(no.status, no.reason)
            if "Allow" in no.headers:
                response.headers["Allow"] = no.headers["Allow"]
            return response

    async def index(self, _: web.Request) -> web.Response:
        more = [*MORE, "/v1/openapi.json"] if self.control is not None else []
        return web.Response(text=" ".join([INDEX, *more]) + "\n")

    async def healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(self, _: web.Request) -> web.Response:
        missing = [
            f"{cluster.name}: {cluster.reason}\n" for cluster in self.state.clusters() if not cluster.ready
        ]
        return web.Response(status=503 if missing else 200, text="".join(missing) or "ready\n")

    async def metrics(self, request: web.Request) -> web.Response:
        accept = ",".join(request.headers.getall("Accept", []))
        body, content_type = await self._rendered(lambda snapshot: render(snapshot, accept))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def counters(self, _: web.Request) -> web.Response:
        body = await self._rendered(lambda snapshot: msgspec.json.encode(counters(snapshot)))
        return web.Response(body=body, content_type="application/json")

    async def openapi(self, _: web.Request) -> web.Response:
        return answer(openapi.document(ROUTES, product_version()))

    async def _rendered(self, draw: Callable[[Snapshot], T]) -> T:
        snapshot = await take(self.state)
        return await asyncio.get_running_loop().run_in_executor(self.thread, draw, snapshot)
