"""The routes for one exchange."""

from __future__ import annotations

import asyncio

from aiohttp import web

from klamm.client.types import Exchange
from klamm.dashboards.web.chosen.copies import NoCopy, copy
from klamm.dashboards.web.chosen.differences import NoVersion, differences, versions
from klamm.dashboards.web.chosen.trees import opened
from klamm.dashboards.web.source import Gone, Source
from klamm.proxy.admin.listening.json_bodies import answer
from klamm.proxy.control.rule_book import Refused

ONE = "/api/exchanges/{key}"


class ChosenPages:
    """The answers about exchanges of a source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        app.router.add_get(ONE, self.exchange)
        app.router.add_get(f"{ONE}/copy/{{form}}", self.copy)
        app.router.add_get(f"{ONE}/versions", self.versions)
        app.router.add_get(f"{ONE}/differences/{{other}}", self.differences)

    async def exchange(self, request: web.Request) -> web.Response:
        """`records=true`: with the content of its records."""
        found, content = await self._found(request.match_info["key"]), request.query.get("records") == "true"
        return answer(await asyncio.to_thread(opened, found, content))

    async def copy(self, request: web.Request) -> web.Response:
        """The exchange as text, in one of the forms."""
        found = await self._found(request.match_info["key"])
        try:
            text = await asyncio.to_thread(copy, found, request.match_info["form"])
        except NoCopy as why:
            raise Refused(422, str(why)) from None
        return answer({"text": text})

    async def versions(self, request: web.Request) -> web.Response:
        """The layouts of its version and of another, `to`, side by side."""
        found, to = await self._found(request.match_info["key"]), request.query.get("to", "")
        if to and not (to.isascii() and to.isdigit() and len(to) < 6):
            raise Refused(422, f"{to[:20]!r} is no version")
        try:
            return answer(await asyncio.to_thread(versions, found, int(to) if to else None))
        except NoVersion as why:
            raise Refused(422, str(why)) from None

    async def differences(self, request: web.Request) -> web.Response:
        """Compares an exchange with another one."""
        names = ("key", "other")
        one, other = [await self._found(request.match_info[name]) for name in names]
        return answer(await asyncio.to_thread(differences, one, other))

    async def _found(self, key: str) -> Exchange:
        try:
            return await self.source.exchange(key)
        except Gone as gone:
            raise Refused(404, str(gone)) from None
