"""A klamm with all of its admin API, in the process of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any, BinaryIO, TypeVar

import aiohttp

from klamm.client import AsyncKlamm
from klamm.proxy.admin import server as admin
from klamm.proxy.admin.access import Access, Tokens, access_of, digest
from klamm.proxy.admin.listening.connections import Connections
from klamm.proxy.admin.listening.https import tls_of
from klamm.proxy.admin.routes import Control
from klamm.proxy.config import Admin, Config
from klamm.proxy.control.capturing import Captures
from klamm.proxy.control.config_file import Applied, ConfigFile
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.process.drain import Drain
from klamm.proxy.control.rule_book import RuleBook
from klamm.proxy.log.audit import Audit
from klamm.settings.followed_files import FollowedFiles
from tests.dashboards.fake_state import FakeState
from tests.fakes.broker import Broker
from tests.fakes.edge import Edge, Lines, cluster

T = TypeVar("T")


class Api:
    """A client of it, what stands behind it, and plain HTTP for what the client would not send."""

    def __init__(self, edge: Edge, brokers: list[Broker], control: Control, klamm: AsyncKlamm) -> None:
        self.edge, self.brokers, self.control, self.klamm = edge, brokers, control, klamm
        self.http: aiohttp.ClientSession
        self.connections: Connections
        self.loop = asyncio.get_running_loop()

    @property
    def book(self) -> RuleBook:
        return self.control.book

    @property
    def log(self) -> Lines:
        return self.edge.log

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """On its loop, from another thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    async def send(
        self, method: str, path: str, body: bytes | BinaryIO | None = None, **headers: str
    ) -> tuple[int, Any]:
        """Status and JSON. Header names with _ for -."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.request(method, path, data=body, headers=named) as answer:
            return answer.status, await answer.json() if await answer.read() else None


async def not_applied(config: Config) -> Applied:
    raise AssertionError("there is no file to be read")


def knowing(token: str | None) -> Access:
    """Callers with this token may do everything; None: all may."""
    tokens = Tokens(None if token is None else digest(token))
    return Access(FollowedFiles("token", "", "", (), lambda: tokens), {})


@asynccontextmanager
async def api(
    token: str | None = None,
    read_only: bool = False,
    clock: Callable[[], int] | None = None,
    settings: Admin | None = None,
    ca: str | None = None,
    audit: Audit | None = None,
) -> AsyncIterator[Api]:
    """In front of one fake broker. `settings`: of callers and of TLS, whose certificate is of `ca`."""
    async with cluster() as (edge, brokers):
        proxied = edge.proxied
        engine, planner = proxied.context.engine, proxied.context.planner
        assert engine is not None
        book = RuleBook(engine) if clock is None else RuleBook(engine, clock)
        book.known = lambda: {proxied.settings.name: frozenset(map(str, proxied.topology.nodes))}
        exchanges = Exchanges(edge.log, "full", frozenset(), planner, book)
        proxied.exchanged = exchanges.show
        intercept, captures = proxied.intercept, Captures([proxied], edge.log)  # type: ignore[arg-type]
        intercept.in_force, book.loaded = book.acts, intercept.review
        state = FakeState()
        state.stats = proxied.stats
        drain = Drain([proxied.leaving], edge.log, 5.0)
        fixed = state, Config, book, exchanges, intercept, lambda: captures, [proxied], edge.log, drain
        file = ConfigFile(None, not_applied, edge.log)
        access = knowing(token) if settings is None else access_of(settings)
        control = Control(*fixed, file, access, read_only, audit)
        tls = None if settings is None else tls_of(settings.tls)
        server = await admin.start(control.state, "127.0.0.1", 0, control, tls)
        url = server.url.removesuffix("/")
        address = url.removeprefix("http://")
        try:
            async with (
                AsyncKlamm(address, token, "ada", ca=ca) as klamm,
                aiohttp.ClientSession(url) as http,
            ):
                found = Api(edge, brokers, control, klamm)
                found.http, found.connections = http, server.connections
                yield found
        finally:
            await captures.end()
            await server.close()


@contextmanager
def in_thread(**how: Any) -> Iterator[Api]:
    """The same on a loop of its own, for what blocks."""
    started: Future[tuple[Api, asyncio.Event]] = Future()

    async def serve() -> None:
        end = asyncio.Event()
        async with api(**how) as it:
            started.set_result((it, end))
            await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    it, end = started.result(20)
    try:
        yield it
    finally:
        it.loop.call_soon_threadsafe(end.set)
        thread.join(20)
        assert not thread.is_alive()
