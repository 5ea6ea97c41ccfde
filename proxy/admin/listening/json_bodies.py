"""JSON of the admin API: requests are read as their types, answers are always valid text."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
from aiohttp import web

from klamm.client.types import Mistake, Problem
from klamm.decoders.text import valid_text
from klamm.proxy.control.rule_book import Refused
from klamm.settings.nearest import suggestion

JSON = "application/json"
BODY_S = 10.0  # for what is sent to come whole
NUMBERS = {"int": "a whole number", "float": "a number"}
UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")  # of msgspec; not of one inside of another
NO_NUMBER = re.compile(r"Expected `(int|float)\b.*`, got `str` - at `\$\.(\w+)`")  # of msgspec


def answer(value: Any, status: int = 200) -> web.Response:
    """A response with this value as JSON; None: without content."""
    if value is None:
        return web.Response(status=status)
    return web.Response(body=encoded(value), status=status, content_type=JSON)


def refusal(status: int, reason: str, mistakes: list[Mistake] | None = None) -> web.Response:
    return answer(Problem(reason, mistakes or []), status)


def encoded(value: Any) -> bytes:
    """JSON. Names that clients choose may have bytes that are no UTF-8: these are written as escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(_text(msgspec.to_builtins(value)))


def _text(value: Any) -> Any:
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, dict):
        return {_text(key): _text(each) for key, each in value.items()}
    return [_text(each) for each in value] if isinstance(value, list | tuple) else value


async def read_body(request: web.Request, kind: Any) -> Any:
    """Raises Refused."""
    if request.content_type != JSON:
        raise Refused(415, "what is sent must be JSON: Content-Type: application/json")
    try:
        async with asyncio.timeout(BODY_S):
            sent = await request.read()
    except TimeoutError:
        raise Refused(408, f"the body did not come within {BODY_S:g} s") from None
    except web.RequestPayloadError as wrong:
        raise Refused(400, f"the body cannot be read: {wrong.__cause__ or wrong}") from None
    except ConnectionError:  # nobody is left to read this
        raise Refused(400, "the connection ended before the body did") from None
    try:
        return msgspec.json.decode(sent, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
        raise Refused(
            400, _unknown(str(wrong), kind, "field") or f"not what is wanted here: {wrong}"
        ) from None


def read_query(request: web.Request, kind: Any) -> Any:
    """Raises Refused."""
    given = request.query
    twice = next((key for key in given if len(given.getall(key)) > 1), None)
    if twice is not None:
        raise Refused(400, f"{twice} is given twice")
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as wrong:
        if found := NO_NUMBER.fullmatch(str(wrong)):
            kind, name = found.groups()
            raise Refused(400, f"{name} must be {NUMBERS[kind]}, not {given[name]!r}") from None
        raise Refused(400, _unknown(str(wrong), kind, "parameter") or f"a wrong parameter: {wrong}") from None


def _unknown(wrong: str, kind: Any, noun: str) -> str:
    """What to write instead of a name that this type does not have; empty if it is another mistake."""
    found = UNKNOWN.fullmatch(wrong)
    if found is None or not isinstance(kind, type(msgspec.Struct)):
        return ""
    known = [field.encode_name for field in msgspec.structs.fields(kind)]
    return f"there is no {noun} {found[1]!r}{suggestion(found[1], known)}"
