"""JSON in and out of the admin API: what is sent is read as its type, what is told is always text."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from klamm.client.types import Mistake, Problem
from klamm.proxy.control.rule_book import Refused

JSON = "application/json"


def answer(value: Any, status: int = 200) -> web.Response:
    """None has no content."""
    if value is None:
        return web.Response(status=status)
    return web.Response(body=encoded(value), status=status, content_type=JSON)


def refusal(status: int, reason: str, mistakes: list[Mistake] | None = None) -> web.Response:
    return answer(Problem(reason, mistakes or []), status)


def encoded(value: Any) -> bytes:
    """Names that clients make may hold bytes that are no text: they are written out."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_text(msgspec.to_builtins(value)))


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_text(key): _text(each) for key, each in value.items()}
    return [_text(each) for each in value] if isinstance(value, list | tuple) else value


async def read_body(request: web.Request, kind: Any) -> Any:
    """Raises Refused."""
    if request.content_type != JSON:
        raise Refused(415, "what is sent must be JSON: Content-Type: application/json")
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
        raise Refused(400, f"not what is wanted here: {wrong}") from None


def read_query(request: web.Request, kind: Any) -> Any:
    """Raises Refused."""
    given = request.query
    twice = next((key for key in given if len(given.getall(key)) > 1), None)
    if twice is not None:
        raise Refused(400, f"{twice} is given twice")
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as wrong:
        raise Refused(400, f"a wrong parameter: {wrong}") from None
