"""/v1/capture/segments and /v1/capture/archive: the sealed segments of a capture, for other machines."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

from aiohttp import web

from klamm.captures.storage.archive import Sealed, archive_name, pieces, sealed
from klamm.client.types import Segment, Segments
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.control.rule_book import Refused

TAR = "application/x-tar"
PAUSE_S = 0.001  # after each piece of 64 KiB, so that traffic has its turns
UNREAD_S = 30.0  # a reader that takes nothing for so long is given up


async def segments(control: Control, ask: Ask) -> Segments:
    folder = _folder(control)
    found = await _sealed(folder)
    return Segments(str(folder), [Segment(*each) for each in found])


async def archive(control: Control, ask: Ask) -> web.StreamResponse:
    folder = _folder(control)
    if control.archiving:
        raise Refused(503, "somebody reads an archive now: ask again when that has ended")
    control.archiving = True
    try:
        found = await _sealed(folder)
        if not found:
            why = f"no segment in {folder} is sealed yet: one is when it is full or old, or the capture ends"
            raise Refused(409, why)
        return await _send(ask.request, folder, found)
    finally:
        control.archiving = False


def _folder(control: Control) -> Path:
    """Raises Refused."""
    folder = control.captures().folder
    if folder is None:
        raise Refused(404, "nothing was captured since klamm began")
    return Path(folder)


async def _sealed(folder: Path) -> list[Sealed]:
    """Raises Refused."""
    try:
        return await asyncio.to_thread(sealed, folder)
    except OSError as problem:
        raise Refused(409, f"{folder} cannot be read: {problem.strerror}") from None


async def _send(request: web.Request, folder: Path, found: list[Sealed]) -> web.StreamResponse:
    """As fast as it is read, but in small pieces. What goes wrong under way ends the connection, so that the
    reader knows that something is missing.
    """
    named = f'attachment; filename="{archive_name(folder)}.tar"'
    headers = {"Content-Type": TAR, "Content-Disposition": named, "Cache-Control": "no-store"}
    response = web.StreamResponse(headers=headers)
    content: Iterator[bytes] = pieces(folder, found)
    try:
        await response.prepare(request)
        while (piece := await asyncio.to_thread(next, content, None)) is not None:
            async with asyncio.timeout(UNREAD_S):
                await response.write(piece)
            await asyncio.sleep(PAUSE_S)
        await response.write_eof()
    except OSError:  # of the disk, or the reader has gone or takes nothing, which is a TimeoutError
        if request.transport is not None:
            request.transport.abort()
    return response


ROUTES = [
    Route(
        "GET",
        "/v1/capture/segments",
        segments,
        "The sealed segments of the capture that runs, or else of the one that ran last",
        Segments,
        refusals={404: "Nothing was captured", 409: "The folder cannot be read"},
    ),
    Route(
        "GET",
        "/v1/capture/archive",
        archive,
        "A tar of these segments, for the role `full` only; one at a time",
        refusals={404: "Nothing was captured", 409: "No segment is sealed yet", 503: "Somebody reads one"},
        streams=True,
        media=TAR,
        full=True,
    ),
]
