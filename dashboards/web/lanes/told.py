"""An exchange with the values of its bodies."""

from __future__ import annotations

from base64 import b64decode
from functools import cache
from typing import Any, NamedTuple

from klamm.client.types import Body, Exchange
from klamm.dashboards.web.frames import times_of
from klamm.decoders import API, DecodeError, UnknownApi, layout
from klamm.decoders.body import decode_prefix
from klamm.decoders.compile import UNREADABLE, Path, Pick, pick
from klamm.decoders.error_codes import error_name
from klamm.decoders.headers import answered_version
from klamm.decoders.schema import Side

Values = dict[str, Any]

# Of these answers a few fields are enough: what follows them is records.
PICKED: dict[str, tuple[Path, ...]] = {"Fetch": (("error_code",), ("session_id",))}


class Unread(Exception):
    """A body that is not there, or is not what it claims to be."""


class Told(NamedTuple):
    """`begin` and `end`: seconds since 1970, of the request, and of its answer or of the connection's end.
    Equal where no answer was due. `response` is None without an answer.
    """

    key: str
    one: Exchange
    begin: float
    end: float
    request: Values
    response: Values | None

    @property
    def host(self) -> str:
        """The client's address without its port."""
        return self.one.connection.rpartition(":")[0].strip("[]")

    @property
    def error(self) -> str:
        """The name of the answer's own error, "" for none."""
        return named_error((self.response or {}).get("error_code", 0))


def told(key: str, one: Exchange) -> Told:
    """Reads both bodies. Raises Unread."""
    if one.request is None:
        raise Unread("its request was not seen")
    request = _values(one, "request", one.request)
    response = None if one.response is None else _values(one, "response", one.response)
    return Told(key, one, times_of(one)[0] / 1e9, one.time, request, response)


def named_error(code: int) -> str:
    return error_name(code) if code else ""


def _values(one: Exchange, side: Side, body: Body) -> Values:
    if body.raw is None:
        if body.values is None:
            raise Unread(body.reason or "its body was not kept")
        return body.values
    try:
        data = b64decode(body.sent or body.raw)  # rules may have changed it
        api = API[one.api]
        version = answered_version(api.key, one.version, data) if side == "response" else one.version
        if side == "response" and one.api in PICKED:
            return _picked(one.api, version, data)
        values, _ = decode_prefix(data, api.key, version, side)
    except (DecodeError, UnknownApi, LookupError, ValueError) as wrong:
        raise Unread(str(wrong)) from None
    return values


def _picked(api: str, version: int, data: bytes) -> Values:
    """Raises Unread."""
    try:
        found = _pick(api, version)(data, 0, len(data))
    except UNREADABLE:
        raise Unread(f"{api} v{version} response: its first fields cannot be read") from None
    return {path[0]: value for path, value in zip(PICKED[api], found, strict=False) if value is not None}


@cache
def _pick(api: str, version: int) -> Pick:
    return pick(layout(api, version, "response"), PICKED[api])
