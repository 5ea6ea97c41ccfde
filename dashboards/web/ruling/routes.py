"""The routes for rules that are not in force yet. The admin API of klamm has those in force."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from klamm.client.failures import ApiError
from klamm.dashboards.web.noise import UnknownNoise
from klamm.dashboards.web.ruling.drafts import rule_of
from klamm.dashboards.web.ruling.forms import action_forms, checked
from klamm.dashboards.web.ruling.trials import Found, tried
from klamm.dashboards.web.source import Gone, Source, Wish
from klamm.proxy.admin.listening.json_bodies import answer, read_body
from klamm.proxy.control.rule_book import Refused
from klamm.rules.expressions import ExpressionError, parse

T = TypeVar("T")


class TrialWish(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule in the form of a rule file, and the list that it is tried on; `keys`: only these exchanges."""

    rule: dict[str, Any]
    where: str | None = None
    hide: tuple[str, ...] = ()
    keys: frozenset[str] | None = None
    since: float | None = None
    until: float | None = None


class Hits(Struct, frozen=True):
    """Of a rule in force."""

    name: str
    hits: int


class RulingPages:
    """The answers about rules, over a source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def add_to(self, app: web.Application) -> None:
        """Register the routes."""
        app.router.add_get("/api/actions", self.actions)
        app.router.add_get("/api/exchanges/{key}/rule", self.of_exchange)
        app.router.add_get("/api/hits", self.hits)
        app.router.add_post("/api/rule", self.check)
        app.router.add_post("/api/trial", self.trial)

    async def actions(self, _: web.Request) -> web.Response:
        """The actions of rules, with their parameters."""
        return answer(await asyncio.to_thread(action_forms))

    async def of_exchange(self, request: web.Request) -> web.Response:
        """A rule for exchanges like this one."""
        try:
            return answer(rule_of(await self.source.exchange(request.match_info["key"])))
        except Gone as gone:
            raise Refused(404, str(gone)) from None

    async def hits(self, _: web.Request) -> web.Response:
        """How often each rule in force has acted, and how many frames are `paused`; null while klamm does not
        answer, which is no failure here: a page asks again and again.
        """
        rules, frames = await asyncio.gather(
            self._listed("/v1/rules", list[Hits]), self._listed("/v1/paused", list[msgspec.Raw])
        )
        hits = None if rules is None else {one.name: one.hits for one in rules}
        return answer({"hits": hits, "paused": None if frames is None else len(frames)})

    async def _listed(self, path: str, of: type[list[T]]) -> list[T] | None:
        """A list of klamm's; None while it gives none."""
        try:
            status, body = await self.source.relay("GET", path, None)
        except (ApiError, Gone):
            return None
        return msgspec.json.decode(body, type=of) if status == 200 else None

    async def check(self, request: web.Request) -> web.Response:
        """Reads a rule of the form: its YAML, its explanation, its mistakes."""
        written: dict[str, Any] = await read_body(request, dict[str, Any])
        return answer(await asyncio.to_thread(checked, written))

    async def trial(self, request: web.Request) -> web.Response:
        """Tries a rule on the exchanges of the list."""
        asked: TrialWish = await read_body(request, TrialWish)
        wish = Wish(asked.where or None, True, asked.since, asked.until, asked.hide, past=True)
        try:
            if wish.where is not None:
                await asyncio.to_thread(parse, wish.where)
            found: list[Found] = []
            async with aclosing(self.source.found(wish)) as batches:
                async for batch in batches:
                    found += [one for one in batch.exchanges if asked.keys is None or one[0] in asked.keys]
        except (ExpressionError, UnknownNoise) as wrong:
            raise Refused(422, str(wrong)) from None
        return answer(await asyncio.to_thread(tried, asked.rule, found))
