"""Exchanges that tell nothing most of the time, which a page can hide. Beside its filter, because a condition
that names fields of one API holds for no other, so that no filter shows all but such exchanges of one API.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from klamm.rules.expressions import Expression, parse
from klamm.rules.expressions.work import OFFLINE
from klamm.rules.frame import Frame

NOISE = {
    "heartbeats": (
        "api in (Heartbeat, ConsumerGroupHeartbeat, ShareGroupHeartbeat, StreamsGroupHeartbeat)"
        " and not error != NONE"
    ),
    "empty fetches": (
        "api in (Fetch, ShareFetch) and not error != NONE and"
        " all(p.records is None or len(p.records) == 0 for r in responses for p in r.partitions)"
    ),
    "probes of klamm": 'client_id == "klamm"',
}


class UnknownNoise(ValueError):
    """A name that NOISE does not have."""


@cache
def _expression(name: str) -> Expression:
    return parse(NOISE[name], OFFLINE)


class Hidden:
    """Tells which exchanges are of the named kinds, and counts them. Raises UnknownNoise."""

    def __init__(self, names: Sequence[str]) -> None:
        for name in names:
            if name not in NOISE:
                raise UnknownNoise(f"{name[:60]!r} cannot be hidden: {', '.join(NOISE)} can")
        self.expressions = [_expression(name) for name in names]
        self.count = 0

    def hides(self, request: Frame | None, response: Frame | None) -> bool:
        """Whether one of the expressions holds for it as the client was answered; it is then counted."""
        told = None if response is None else response.told
        found = any(expression.holds(request, told) for expression in self.expressions)
        self.count += found
        return found

    def taken(self) -> int:
        """The count since the last call."""
        found, self.count = self.count, 0
        return found
