"""/metrics, /healthz and /readyz: for monitoring and probes. They change nothing and show no traffic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from aiohttp import web

from klamm.proxy.admin.http_server import HttpServer, listen, problems
from klamm.proxy.config import Address
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.metrics.prometheus import render
from klamm.proxy.metrics.snapshot import ClusterState, Snapshot, State, take
from klamm.settings.nearest import suggestion

PATHS = "/metrics /healthz /readyz"
REQUIRED = ("all", "any")

T = TypeVar("T")


async def start(state: State, at: Address) -> HttpServer:
    """A listener for nothing else. Raises OSError as `listen` does."""
    app = web.Application(middlewares=[problems])
    Health(state).add_to(app)
    app.router.add_get("/", _index)
    return await listen(app, at, "--metrics")


async def _index(_: web.Request) -> web.Response:
    return web.Response(text=f"klamm: {PATHS}\n")


class Health:
    """The three endpoints, for any application."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.thread = ThreadPoolExecutor(1, "metrics")  # one: scrapes that come together wait for each other

    def add_to(self, app: web.Application) -> None:
        """Ends with the application."""
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        app.router.add_get("/metrics", self.metrics)
        app.on_cleanup.append(self._end)

    async def _end(self, _: web.Application) -> None:
        self.thread.shutdown()

    async def healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        """200 when all, or with `require=any` one, of the clusters are ready: those named by `cluster`."""
        asked, required = _readiness(request, self.state.clusters())
        missing = [f"{cluster.name}: {cluster.reason}\n" for cluster in asked if not cluster.ready]
        ready = not missing or (required == "any" and len(missing) < len(asked))
        text = ("ready\n" if ready else "") + "".join(missing)
        return web.Response(status=200 if ready else 503, text=text)

    async def metrics(self, request: web.Request) -> web.Response:
        accept = ",".join(request.headers.getall("Accept", []))
        body, content_type = await self.rendered(lambda snapshot: render(snapshot, accept))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def rendered(self, draw: Callable[[Snapshot], T]) -> T:
        """A snapshot, drawn in the thread."""
        snapshot = await take(self.state)
        return await asyncio.get_running_loop().run_in_executor(self.thread, draw, snapshot)


def _readiness(request: web.Request, clusters: Sequence[ClusterState]) -> tuple[list[ClusterState], str]:
    """The clusters that are asked for, and how many of them have to be ready. Raises Refused: a probe with a
    mistake in it shall not pass for another one.
    """
    query = request.query
    unknown = [key for key in query if key not in ("cluster", "require")]
    if unknown:
        raise Refused(400, f"unknown parameter {unknown[0]!r}: there are cluster and require")
    required = query.get("require", "all")
    if required not in REQUIRED:
        raise Refused(400, f"require must be all or any, not {required!r}")
    named = query.getall("cluster", [])
    names = [cluster.name for cluster in clusters]
    for name in named:
        if name not in names:
            raise Refused(404, f"there is no cluster {name!r}{suggestion(name, names)}")
    return [cluster for cluster in clusters if not named or cluster.name in named], required
