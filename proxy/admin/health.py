"""/metrics, /healthz and /readyz: for monitoring and probes. They change nothing and show no traffic."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client.exposition import choose_encoder

from klamm.proxy.admin.guard import check_name
from klamm.proxy.admin.listening.http_server import HttpServer, listen, problems
from klamm.proxy.config_types import Address
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.log.events import Events
from klamm.proxy.metrics.prometheus import render
from klamm.proxy.metrics.snapshot import ClusterState, Snapshot, State, take
from klamm.settings.loopback import is_loopback
from klamm.settings.nearest import suggestion

PATHS = "/metrics /healthz /readyz"
REQUIRED = ("all", "any")
LONGEST_REST_S = 1.0

T = TypeVar("T")


async def start(state: State, at: Address, log: Events | None = None) -> HttpServer:
    """A server for these endpoints only. Raises OSError as `listen` does."""
    local = is_loopback(at.host)

    @web.middleware
    async def named(request: web.Request, handler: Handler) -> web.StreamResponse:
        check_name(request, local)
        return await handler(request)

    app = web.Application(middlewares=[problems, named])
    Health(state).add_to(app)
    app.router.add_get("/", _index)
    return await listen(app, at, "--metrics", log=log)


async def _index(_: web.Request) -> web.Response:
    return web.Response(text=f"klamm: {PATHS}\n")


class Health:
    """The three endpoints, for any application."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.thread = ThreadPoolExecutor(1, "metrics")  # one: scrapes that come together wait for each other
        self.one = asyncio.Lock()
        self.next: dict[str, asyncio.Task[Any]] = {}  # drawings that have not begun, by kind
        self.drawing: set[asyncio.Task[Any]] = set()
        self.free_at = 0.0  # in s of the loop: the thread rests as long as it drew, and traffic goes on

    def add_to(self, app: web.Application) -> None:
        """Add the endpoints to an application. The thread ends with it."""
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        app.router.add_get("/metrics", self.metrics)
        app.on_cleanup.append(self._end)

    async def _end(self, _: web.Application) -> None:
        for task in self.drawing:
            task.cancel()
        await asyncio.gather(*self.drawing, return_exceptions=True)
        self.thread.shutdown()

    async def healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        """200 if all clusters, or those of `cluster`, are ready; with `require=any` one is enough. 503 while
        klamm drains.
        """
        asked, required = _readiness(request, self.state.clusters())
        missing = [f"{cluster.name}: {cluster.reason}\n" for cluster in asked if not cluster.ready]
        ready = not missing or (required == "any" and len(missing) < len(asked))
        if self.state.draining():
            return web.Response(status=503, text="draining\n")
        text = ("ready\n" if ready else "") + "".join(missing)
        return web.Response(status=200 if ready else 503, text=text)

    async def metrics(self, request: web.Request) -> web.Response:
        accept = ",".join(request.headers.getall("Accept", []))
        kind = f"metrics as {choose_encoder(accept)[1]}"
        body, content_type = await self.rendered(kind, lambda snapshot: render(snapshot, accept))
        return web.Response(body=body, headers={"Content-Type": content_type})

    async def rendered(self, kind: str, draw: Callable[[Snapshot], T]) -> T:
        """Call `draw` with a snapshot in the thread. Callers that come while it is busy share one result."""
        if kind not in self.next:
            task = self.next[kind] = asyncio.get_running_loop().create_task(self._rendered(kind, draw))
            self.drawing.add(task)
            task.add_done_callback(self._drawn)
        found: T = await asyncio.shield(self.next[kind])
        return found

    def _drawn(self, task: asyncio.Task[Any]) -> None:
        self.drawing.discard(task)
        if not task.cancelled():
            task.exception()  # those who wait for it are told; there may be none

    async def _rendered(self, kind: str, draw: Callable[[Snapshot], T]) -> T:
        loop = asyncio.get_running_loop()
        async with self.one:
            await asyncio.sleep(self.free_at - loop.time())
            del self.next[kind]  # whoever asks from now on wants what comes from now on
            began = loop.time()
            drawn = await loop.run_in_executor(self.thread, draw, await take(self.state))
            self.free_at = loop.time() + min(loop.time() - began, LONGEST_REST_S)
            return drawn


def _readiness(request: web.Request, clusters: Sequence[ClusterState]) -> tuple[list[ClusterState], str]:
    """The clusters that a probe asks for, and how many of them have to be ready. Raises Refused if the probe
    has a mistake.
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
