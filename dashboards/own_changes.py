"""Tells changes that klamm makes without a rule from others. It replaces the addresses of brokers, and limits
the versions that ApiVersions offers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from klamm.decoders import DecodeError, UnknownApi
from klamm.decoders.schema import HOST, NODE_ID, PORT, Field, members
from klamm.proxy.session.rewriting.api_versions import clamped
from klamm.rules.frame import Frame
from klamm.rules.plan import API_VERSIONS

ADDRESSES = frozenset({NODE_ID, HOST, PORT})


def is_own(frame: Frame) -> bool | None:
    """Whether nothing else differs in the answer that klamm sent on in the place of this one; None where it
    is not there, or one of them cannot be read.
    """
    if frame.sent is None:
        return None
    if frame.api.key == API_VERSIONS:
        limited = (clamped(frame.body, frame.version, unknown) for unknown in (False, True))
        return frame.sent.body in limited
    try:
        return _are_same(frame.api.fields(frame.side), frame.values, frame.sent.values)
    except (DecodeError, UnknownApi):
        return None


def _are_same(fields: Sequence[Field], came: Mapping[str, Any], went: Mapping[str, Any]) -> bool:
    return all(f.mark in ADDRESSES or _is_same(f, came.get(f.name), went.get(f.name)) for f in fields)


def _is_same(field: Field, came: Any, went: Any) -> bool:
    """The same but for addresses; endpoints that clients are not told are left out of their array."""
    inner = members(field)
    if not inner or came is None or went is None:
        return bool(came == went)
    if field.kind == "struct":
        return _are_same(inner, came, went)
    if len(came) != len(went):
        return any(f.mark == HOST for f in inner)
    return all(_are_same(inner, *pair) for pair in zip(came, went, strict=True))
