"""Routes for whole captures: overview, analysis, exports. Of a running klamm's, only the files are had."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from contextlib import aclosing, suppress
from importlib.util import find_spec
from typing import Any

from aiohttp import web

from klamm.client.failures import ApiError
from klamm.client.failures import Refused as RefusedByKlamm
from klamm.client.types import Mistake
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.captures.analysis import Analysis, Running
from klamm.dashboards.web.captures.counting import Overviews
from klamm.dashboards.web.captures.exporting import Exporting
from klamm.dashboards.web.captures.exports import Wanted
from klamm.dashboards.web.live import Live
from klamm.dashboards.web.noise import Hidden, UnknownNoise
from klamm.dashboards.web.source import Source
from klamm.proxy.admin.listening.json_bodies import answer, encoded, read_body
from klamm.proxy.control.rule_book import Refused
from klamm.rules.expressions import ExpressionError, parse
from klamm.settings.extras import installing

NOT_FOUND = 404
LINES, TAR = "application/jsonl", "application/x-tar"
OVERVIEW, EXPORTS, ARCHIVE = "/api/capture/overview", "/api/exports", "/api/capture/archive"
REPORT = "/api/analysis/report"
ENDLESS = frozenset({OVERVIEW, EXPORTS, ARCHIVE, REPORT})  # answers that take as long as they take


class CapturePages:
    """The answers about captures. Findings are there for every source: of a running klamm there are none."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        if isinstance(self.source, Captures):
            _OfCaptures(self.source).add_to(app)
            return
        app.router.add_get("/api/findings", self.none)
        if isinstance(self.source, Live):
            _OfKlamm(self.source).add_to(app)

    async def none(self, _: web.Request) -> web.Response:
        return answer([])


class _OfCaptures:
    def __init__(self, source: Captures) -> None:
        self.source, self.analysis = source, Analysis(source.paths)
        self.exporting = Exporting(source)
        self.overviews = Overviews(source.paths)

    def add_to(self, app: web.Application) -> None:
        app.router.add_get(OVERVIEW, self.overview)
        app.router.add_get("/api/findings", self.findings)
        app.router.add_get("/api/analysis", self.state)
        app.router.add_post("/api/analysis", self.begin)
        app.router.add_delete("/api/analysis", self.cancel)
        app.router.add_get(REPORT, self.report)
        app.router.add_post(EXPORTS, self.export)
        app.router.add_get(f"{EXPORTS}/{{name}}", self.file)
        app.cleanup_ctx.append(self._closing)

    async def _closing(self, _: web.Application) -> AsyncIterator[None]:
        yield
        await self.analysis.close()
        self.exporting.close()

    async def overview(self, request: web.Request) -> web.StreamResponse:
        """Streams overviews of the capture, each of more of it."""
        return await told(request, self.overviews.told())

    async def findings(self, _: web.Request) -> web.Response:
        """The findings of the last analysis that has ended by itself."""
        return answer(self.analysis.found)

    async def state(self, _: web.Request) -> web.Response:
        return answer(self.analysis.state)

    async def begin(self, request: web.Request) -> web.Response:
        try:
            self.analysis.begin(f"{request.scheme}://{request.host}/")
        except Running:
            raise Refused(409, "an analysis runs already") from None
        return answer(self.analysis.state, 202)

    async def cancel(self, _: web.Request) -> web.Response:
        await self.analysis.cancel()
        return answer(self.analysis.state)

    async def report(self, _: web.Request) -> web.StreamResponse:
        if not self.analysis.state.report:
            raise Refused(404, "there is no report: an analysis makes one")
        return web.FileResponse(self.analysis.report, headers=_attached("klamm-report.html", "text/html"))

    async def export(self, request: web.Request) -> web.StreamResponse:
        """Makes a file, tells how far it is, and in the end where it can be fetched."""
        wanted: Wanted = await read_body(request, Wanted)
        await asyncio.to_thread(_check, wanted)
        return await told(request, self.exporting.make(wanted))

    async def file(self, request: web.Request) -> web.StreamResponse:
        found = self.exporting.files.get(request.match_info["name"])
        if found is None:
            raise Refused(404, "this file is not kept any more: make it again")
        return web.FileResponse(found.path, headers=_attached(found.name, found.media))


class _OfKlamm:
    """The captures of a running klamm; they begin and end over its admin API."""

    def __init__(self, source: Live) -> None:
        self.source = source

    def add_to(self, app: web.Application) -> None:
        app.router.add_get("/api/capture", self.state)
        app.router.add_get(ARCHIVE, self.archive)

    async def state(self, _: web.Request) -> web.Response:
        """The capture that runs, and the sealed segments of this one or of the last; null without one.
        `install`: the command without which captures are not opened here, "" where they are.
        """
        klamm = self.source.klamm
        try:
            capture, files = await asyncio.gather(*map(_or_none, (klamm.capture(), klamm.capture_segments())))
        except ApiError as problem:
            raise Refused(502, str(problem)) from None
        install = installing("capture") if find_spec("pyarrow") is None else ""
        return answer({"capture": capture, "files": files, "install": install})

    async def archive(self, request: web.Request) -> web.StreamResponse:
        """Its tar, as it comes from klamm."""
        try:
            found = await self.source.klamm.capture_segments()
            async with self.source.klamm.capture_archive() as pieces:
                name = f"{found.folder.rstrip('/').rpartition('/')[2]}.tar"
                response = web.StreamResponse(headers=_attached(name, TAR))
                await response.prepare(request)
                return await _carried(request, response, pieces)
        except RefusedByKlamm as no:
            raise Refused(no.status, str(no)) from None
        except ApiError as problem:
            raise Refused(502, str(problem)) from None


async def _or_none(asked: Awaitable[Any]) -> Any:
    """None where klamm has nothing of the kind."""
    try:
        return await asked
    except RefusedByKlamm as no:
        if no.status != NOT_FOUND:
            raise
        return None


async def _carried(
    request: web.Request, response: web.StreamResponse, pieces: AsyncIterator[bytes]
) -> web.StreamResponse:
    """Where it ends too early, so does the page's connection: the browser then says that it is not whole."""
    try:
        async for piece in pieces:
            await response.write(piece)
        await response.write_eof()
    except (ConnectionError, ApiError):
        if request.transport is not None:
            request.transport.abort()
    return response


async def told(request: web.Request, found: AsyncGenerator[Any, None]) -> web.StreamResponse:
    """A line of JSON for each."""
    response = web.StreamResponse(headers={"Content-Type": LINES, "Cache-Control": "no-store"})
    async with aclosing(found) as lines:
        with suppress(ConnectionError):  # the page has gone
            await response.prepare(request)
            async for each in lines:
                await response.write(encoded(each) + b"\n")
    return response


def _attached(name: str, media: str) -> dict[str, str]:
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
    named = f'attachment; filename="{plain}"'
    return {"Content-Type": media, "Content-Disposition": named, "Cache-Control": "no-store"}


def _check(wanted: Wanted) -> None:
    """Raises Refused for an expression that cannot hold, and for what cannot be hidden."""
    try:
        if wanted.where is not None:
            parse(wanted.where).apis()
        Hidden(wanted.hide)
    except (ExpressionError, UnknownNoise) as wrong:
        raise Refused(422, str(wrong), [Mistake("where", str(wrong))]) from None
