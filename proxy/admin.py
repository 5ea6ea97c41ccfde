"""The HTTP server on the proxy's own loop: metrics, health and counters, rendered off the loop.

Only what runs with --admin imports this module: aiohttp takes 12 MB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
from aiohttp import web

from klamm.proxy.config import Address
from klamm.proxy.counters import counters
from klamm.proxy.discovery import why_not_bound
from klamm.proxy.metrics import render
from klamm.proxy.snapshot import Snapshot, State, take

INDEX = "klamm: /metrics /healthz /readyz /v1/counters\n"

T = TypeVar("T")


class Admin:
    """A running server. `address` holds the port that was taken where 0 was asked for."""

    def __init__(self, runner: web.AppRunner, endpoints: _Endpoints, address: Address) -> None:
        self._runner, self._endpoints, self.address = runner, endpoints, address

    async def close(self) -> None:
        """Stops listening and ends what is open."""
        await self._runner.cleanup()
        self._endpoints.thread.shutdown()


async def start(state: State, host: str, port: int) -> Admin:
    """Serve `state` on host:port. OSError, with a text for people in `strerror`, if that cannot be had."""
    endpoints = _Endpoints(state)
    app = web.Application()
    app.router.add_get("/", endpoints.index)
    app.router.add_get("/healthz", endpoints.healthz)
    app.router.add_get("/readyz", endpoints.readyz)
    app.router.add_get("/metrics", endpoints.metrics)
    app.router.add_get("/v1/counters", endpoints.counters)
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


class _Endpoints:
    def __init__(self, state: State) -> None:
        self.state = state
        self.thread = ThreadPoolExecutor(1, "admin")  # one: scrapes that come together wait for each other

    async def index(self, _: web.Request) -> web.Response:
        return web.Response(text=INDEX)

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

    async def _rendered(self, draw: Callable[[Snapshot], T]) -> T:
        snapshot = await take(self.state)
        return await asyncio.get_running_loop().run_in_executor(self.thread, draw, snapshot)
