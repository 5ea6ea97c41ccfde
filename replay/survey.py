"""Looks through a capture before it is sent, and finds the requests that can be sent again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from klamm.captures.captured import Captured, CapturedConnection
from klamm.decoders import API

PRODUCE, CREATE_TOPICS = 0, 19
AUTHENTICATING = frozenset({17, 36})
BETWEEN_BROKERS = frozenset({
    4, 5, 6, 7, 27, 52, 53, 54, 56, 58, 59, 62, 63, 64, 67, 70, 73, 80, 81, 82, 83, 84, 85, 86, 87,
})  # fmt: skip


@dataclass(slots=True)
class Survey:
    """`left_out`: why -> how many requests. `lost`: frames that the capture says it lacks."""

    requests: int = 0
    blank_produces: int = 0
    first_ns: int = 0
    last_ns: int = 0
    connections: set[CapturedConnection] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)
    lost: int = 0


def why_not(row: Captured, without: Container[str] = ()) -> str | None:
    """Why a request is not sent again; None if it is."""
    api = API.get(row.api_key)
    if api is not None and api.name in without:
        return "as was asked for (--without)"
    if row.api_key in AUTHENTICATING:
        return "klamm authenticates itself"
    if row.api_key in BETWEEN_BROKERS:
        return "it is of brokers among themselves"
    if row.frame is None:
        return "its content is not in the capture"
    if row.blanks and row.api_key not in (PRODUCE, CREATE_TOPICS):
        return "its secrets are not in the capture"
    return None


def survey(rows: Iterable[Captured], without: Container[str] = ()) -> Survey:
    """Takes rows as the brokers saw them."""
    found = Survey()
    for row in rows:
        found.lost += row.lost
        if row.kind != "frame" or row.side != "request" or row.connection is None:
            continue
        reason = why_not(row, without)
        if reason is not None:
            found.left_out[reason] += 1
            continue
        found.requests += 1
        found.blank_produces += row.api_key == PRODUCE and bool(row.blanks)
        found.first_ns = found.first_ns or row.time_ns
        found.last_ns = row.time_ns
        found.connections.add(row.connection)
    return found
