"""Conditions that Spark hands to the Data Source, on columns that segments have without decoding."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from klamm.decoders import API

SOURCES = {  # columns of `frames` by which frames are left out, and their columns in a segment
    **{name: name for name in ("capture", "connection", "cluster", "broker", "client", "client_id")},
    **{name: name for name in ("principal", "kind", "side", "api_key")},
    **{"api": "api_key", "time": "time_ns"},
}
Filters = Sequence[tuple[str, str, Any]]  # column, operator, value; all must hold


def ns(time: datetime) -> int:
    """Since 1970; without a time zone it is UTC."""
    known = time if time.tzinfo else time.replace(tzinfo=UTC)
    delta = known - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 10**9 + delta.microseconds * 1000


def api_key(name: str | int) -> int:
    """-1 for what klamm does not know."""
    if isinstance(name, int):
        return name
    api = API.get(name)
    return -1 if api is None else api.key
