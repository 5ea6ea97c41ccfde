"""/v1/exchanges: the newest exchanges, kept while somebody asks for them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from msgspec import Meta, Struct

from klamm.client.types import Exchange, Exchanges, Mistake
from klamm.proxy.admin.routes import Ask, Control, Route
from klamm.proxy.control.conditions import checked, made_for_all
from klamm.proxy.control.exchange import Seen, holds, shown
from klamm.proxy.control.recorder import KEPT, Recorder
from klamm.proxy.control.rule_book import Refused
from klamm.rules.expressions import Expression, ExpressionError


class Newest(Struct, frozen=True, forbid_unknown_fields=True):
    """The wanted exchanges. `where` is an expression as in rules; it needs bodies, as `bodies` does."""

    where: str | None = None
    limit: Annotated[int, Meta(ge=1, le=KEPT)] = 100
    bodies: bool = False


class Form(Struct, frozen=True, forbid_unknown_fields=True):
    """The form of bodies."""

    form: Literal["values", "raw"] = "values"


async def newest(control: Control, ask: Ask) -> Exchanges:
    query: Newest = ask.query
    where = None if query.where is None else await condition(control, query.where)
    ring = recorder(control).asked(query.bodies or where is not None)
    kept = list(ring.kept)
    async with control.judging:
        found = await asyncio.to_thread(_chosen, kept, where, query.limit)
    return Exchanges(ring.since, ring.bodies, found, 0 if where is None else where.unjudged)


def _chosen(kept: list[tuple[int, Seen]], where: Expression | None, limit: int) -> list[Exchange]:
    found: list[Exchange] = []
    for number, one in reversed(kept):
        if where is None or holds(where, one):
            found.append(shown(one, number))
            if len(found) == limit:
                break
    return found[::-1]


async def one(control: Control, ask: Ask) -> Exchange:
    ring = recorder(control).ring
    is_number = ask.name.isascii() and ask.name.isdigit() and len(ask.name) < 19
    found = ring.of(int(ask.name)) if ring is not None and is_number else None
    if found is None:
        raise Refused(404, f"the exchange {ask.name[:30]!r} is not kept, or no more")
    return shown(found, int(ask.name), ask.query.form)


async def condition(control: Control, text: str, path: str = "where", listens: bool = False) -> Expression:
    """An expression that can hold for some API. `path`: its place in the request; `listens`: it is for a
    listener of this process. Raises Refused.
    """
    make = made_for_all if listens else checked
    async with control.judging:
        try:
            return await asyncio.to_thread(make, text)
        except ExpressionError as wrong:
            raise Refused(422, str(wrong), [Mistake(path, str(wrong))]) from None


def recorder(control: Control) -> Recorder:
    if control.recorder is None:
        control.recorder = Recorder(control.exchanges)
    return control.recorder


WHERE = {422: "The expression has a mistake"}
ROUTES = [
    Route(
        "GET",
        "/v1/exchanges",
        newest,
        "The newest exchanges; klamm keeps them from the first call until a minute after the last",
        Exchanges,
        query=Newest,
        refusals=WHERE,
    ),
    Route(
        "GET",
        "/v1/exchanges/{name}",
        one,
        "One exchange, with its bodies if they were asked for",
        Exchange,
        query=Form,
        refusals={404: "It is not kept, or no more"},
    ),
]
