"""The web inspector's HTTP server: the page, and what it asks for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.client.failures import ApiError
from klamm.client.failures import Refused as RefusedByKlamm
from klamm.client.types import Mistake
from klamm.dashboards.web.captures.routes import ENDLESS, CapturePages
from klamm.dashboards.web.chosen.routes import ChosenPages
from klamm.dashboards.web.columns import Column, UnknownField, columns, paths
from klamm.dashboards.web.door import SESSION, SIGN_IN, Door, add_headers
from klamm.dashboards.web.lanes.timelines import TIMELINES
from klamm.dashboards.web.lines import Reads, Rows, line
from klamm.dashboards.web.noise import NOISE, Hidden, UnknownNoise
from klamm.dashboards.web.ruling.routes import RulingPages
from klamm.dashboards.web.source import Found, Gone, Source, Wish
from klamm.dashboards.web.traffic.answers import Asked
from klamm.decoders import API, ERRORS
from klamm.proxy.admin.listening.http_server import HttpServer, listen, problems
from klamm.proxy.admin.listening.json_bodies import JSON, answer, encoded, read_query
from klamm.proxy.config_types import Address
from klamm.proxy.control.rule_book import Refused
from klamm.rules.expressions import ExpressionError, parse
from klamm.rules.expressions.names import EXCHANGE, MARKED

LINES = "application/jsonl"
STREAMS = ("/v1/capture/archive",)  # of the admin API, which have routes of their own here
NAME = 64  # the most characters of a list's name
PAUSE_S = 5.0  # without a batch: an empty line then tells whether the page is still there
STAY_S = 2.0  # that exchanges are still read for a page that has gone
TYPES = {
    ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
}  # fmt: skip
STATIC = Path(__file__).parent / "static"


async def start(source: Source, at: Address, token: str | None = None) -> HttpServer:
    """Serve the page. `token`: who comes must show it; None for a loopback address only. Raises OSError, as
    `listen` does.
    """
    door = Door(token)
    pages = _Pages(source)
    app = web.Application(middlewares=[problems, door.guarded], client_max_size=1 << 20)
    app.on_response_prepare.append(add_headers)
    app.router.add_get("/", pages.page("index.html"))
    app.router.add_get(SIGN_IN, pages.page("sign-in.html"))
    app.router.add_post(SESSION, door.sign_in)
    app.router.add_get("/healthz", pages.healthz)
    app.router.add_get("/static/{name}", pages.static)
    app.router.add_get("/api/about", pages.about)
    app.router.add_get("/api/words", pages.words)
    app.router.add_get("/api/rows", pages.rows)
    app.router.add_get("/api/fields", pages.fields)
    for name, (make, where) in TIMELINES.items():
        app.router.add_get(f"/api/marks/{name}", pages.stream(make, where, bodies=True))
    ChosenPages(source).add_to(app)
    RulingPages(source).add_to(app)
    CapturePages(source).add_to(app)
    app.router.add_get("/api/traffic", pages.traffic)
    app.router.add_route("*", "/api/klamm/{path:.+}", pages.relay)
    return await listen(
        app, at, "--listen", frozenset({"/api/rows", *ENDLESS, *(f"/api/marks/{name}" for name in TIMELINES)})
    )


class _Pages:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.files: Mapping[str, bytes] = {path.name: path.read_bytes() for path in STATIC.iterdir()}

    def page(self, name: str) -> Any:
        async def serve(_: web.Request) -> web.Response:
            return self._file(name)

        return serve

    async def healthz(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def static(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.files:
            raise Refused(404, f"there is no file {name[:60]!r}")
        return self._file(name)

    async def about(self, _: web.Request) -> web.Response:
        return answer(await self.source.about())

    async def words(self, _: web.Request) -> web.Response:
        """Names for the completion of filters, and the kinds of exchanges that can be hidden."""
        apis, errors = (sorted(one.name for one in table) for table in (API, ERRORS))
        names = sorted({*EXCHANGE, *MARKED})
        return answer({"names": names, "apis": apis, "errors": errors, "noise": list(NOISE)})

    async def fields(self, request: web.Request) -> web.Response:
        """Fields of bodies that can be columns: those of `apis`, names with commas between them, or all. The
        fields in `check` must be among them.
        """
        await asyncio.to_thread(_columns, request.query.get("check", ""))
        names = [name for name in request.query.get("apis", "").split(",") if name in API]
        return answer(await asyncio.to_thread(paths, [API[name] for name in names] or API))

    async def rows(self, request: web.Request) -> web.StreamResponse:
        """The list. `fields`: those of bodies that it has as columns."""
        wanted = await asyncio.to_thread(_columns, request.query.get("fields", ""))
        return await self.stream(partial(Rows, wanted), bodies=bool(wanted))(request)

    def stream(
        self, make: Callable[[], Reads], where: Callable[[str], str] = str, bodies: bool = False
    ) -> Handler:
        """Lines of JSON for as long as the page reads. `where`: makes the filter of the page's condition."""

        async def serve(request: web.Request) -> web.StreamResponse:
            wish = _wish(request, where, bodies)
            await asyncio.to_thread(_check, wish.where)
            return await self._stream(request, wish, make())

        return serve

    async def _stream(self, request: web.Request, wish: Wish, reads: Reads) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": LINES, "Cache-Control": "no-store"})
        try:
            async with (
                aclosing(self.source.found(wish)) as source,
                aclosing(_with_pauses(source)) as found,
            ):
                await response.prepare(request)
                try:
                    async for each in found:
                        text = b"" if each is None else encoded(await asyncio.to_thread(line, each, reads))
                        await response.write(text + b"\n")
                except ConnectionError:
                    if wish.kept:
                        await _stay(found)
        except ConnectionError:
            pass  # the page has gone
        except RefusedByKlamm as no:
            await response.write(encoded({"problem": str(no)}) + b"\n")
        return response

    async def traffic(self, request: web.Request) -> web.Response:
        """Clients, brokers and topics, and the chosen one of them."""
        asked: Asked = read_query(request, Asked)
        await asyncio.to_thread(_check, asked.where or None)
        try:
            found = await self.source.traffic(asked)
        except ApiError as problem:
            raise Refused(502, str(problem)) from None
        return web.Response(body=await asyncio.to_thread(encoded, found), content_type=JSON)

    async def relay(self, request: web.Request) -> web.Response:
        """A call of the admin API, as whoever started this server."""
        path = "/" + request.match_info["path"]
        if not path.startswith("/v1/") or path in STREAMS or "/live" in path:
            raise Refused(404, f"{path[:60]!r} is not relayed")
        raw = request.rel_url.raw_path.removeprefix("/api/klamm")
        query = f"?{request.rel_url.raw_query_string}" if request.rel_url.raw_query_string else ""
        try:
            status, body = await self.source.relay(request.method, raw + query, await request.read() or None)
        except Gone as gone:
            raise Refused(404, str(gone)) from None
        except ApiError as problem:
            raise Refused(502, str(problem)) from None
        return web.Response(status=status, body=body, content_type=JSON)

    def _file(self, name: str) -> web.Response:
        kind = TYPES[Path(name).suffix]
        headers = {"Cache-Control": "no-cache"}
        return web.Response(body=self.files[name], content_type=kind, charset="utf-8", headers=headers)


async def _stay(found: AsyncGenerator[Found | None, None]) -> None:
    """The page has gone. If it is loaded again at once, nothing is missing between the two."""
    with suppress(TimeoutError):
        async with asyncio.timeout(STAY_S):
            async for _ in found:
                pass


async def _with_pauses(source: AsyncGenerator[Found, None]) -> AsyncGenerator[Found | None, None]:
    """None for each time in which nothing came."""
    upcoming = asyncio.ensure_future(anext(source, None))
    try:
        while True:
            done, _ = await asyncio.wait({upcoming}, timeout=PAUSE_S)
            if not done:
                yield None
                continue
            found = upcoming.result()
            if found is None:
                return
            yield found
            upcoming = asyncio.ensure_future(anext(source, None))
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)


def _wish(request: web.Request, where: Callable[[str], str], bodies: bool) -> Wish:
    """From the query of a stream: where, since, until, hide, list, after and kept. Raises Refused."""
    query = request.query
    wanted = where(query.get("where", "").strip())
    try:
        since, until = (float(query[name]) if name in query else None for name in ("since", "until"))
    except ValueError:
        raise Refused(422, "since and until are seconds since 1970, such as 1764000000.5") from None
    hide = tuple(name for name in query.get("hide", "").split(",") if name)
    try:
        Hidden(hide)
    except UnknownNoise as wrong:
        raise Refused(422, str(wrong)) from None
    of_list, after = query.get("list", ""), query.get("after", "0")
    if len(of_list) > NAME or not (after.isascii() and after.isdigit() and len(after) <= NAME):
        raise Refused(422, f"list is a name of at most {NAME} characters, and after a key of an exchange")
    kept = query.get("kept", "") == "true"
    return Wish(wanted or None, bodies, since, until, hide, of_list=of_list, after=int(after), kept=kept)


def _columns(text: str) -> tuple[Column, ...]:
    """Raises Refused."""
    try:
        return columns(text)
    except UnknownField as wrong:
        raise Refused(422, str(wrong)) from None


def _check(where: str | None) -> None:
    """Raises Refused for an expression that cannot hold."""
    if where is None:
        return
    try:
        parse(where).apis()
    except ExpressionError as wrong:
        raise Refused(422, str(wrong), [Mistake("where", str(wrong))]) from None
