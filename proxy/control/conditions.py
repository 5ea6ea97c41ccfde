"""Expressions of callers, checked in a thread that leaves most of the time to the traffic."""

from __future__ import annotations

import time

from klamm.decoders import API
from klamm.rules.expressions import SIDES, Expression, parse

PAUSE_S = 0.0002  # after each API


def checked(text: str) -> Expression:
    """An expression that can hold for some API; it is made for no more APIs than it takes to know. Raises
    ExpressionError. For a thread.
    """
    where = parse(text)
    for api in API:
        if any(where.misfit(api, api.versions.last, side) is None for side in SIDES):
            return where
        time.sleep(PAUSE_S)
    raise where.nowhere(API)


def made_for_all(text: str) -> Expression:
    """Likewise, made for all APIs and versions, which a listener needs."""
    where = checked(text)
    for api in API:
        for side in SIDES:
            where.misfit(api, api.versions.last, side)
        where.by_request(api)
        time.sleep(PAUSE_S)
    return where
