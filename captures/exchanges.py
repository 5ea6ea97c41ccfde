"""Joins requests with their responses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from klamm.captures.captured import TIME, Captured, CapturedConnection


class Exchange(NamedTuple):
    """`request` is None for a response whose request came before the capture, or is missing in it; `response`
    where none was due, seen or kept.
    """

    request: Captured | None
    response: Captured | None

    @property
    def first(self) -> Captured:
        """The half that there is, the request if it is."""
        found = self.request or self.response
        assert found is not None
        return found

    @property
    def last(self) -> Captured:
        """The half that came last, of those that there are."""
        return self.response or self.first

    @property
    def latency_ns(self) -> int | None:
        if self.request is None or self.response is None:
            return None
        return self.response.time_ns - self.request.time_ns


def exchanges(captured: Iterable[Captured]) -> Iterator[Exchange]:
    """Gives exchanges in the order in which they end: with the response, else with the connection or the
    capture; those that end together in that of their requests.
    """
    waiting: defaultdict[CapturedConnection, dict[int, Captured]] = defaultdict(dict)
    for one in captured:
        connection = one.connection
        if connection is None:
            continue
        if one.kind == "closed":
            for request in waiting.pop(connection, {}).values():
                yield Exchange(request, None)
        elif one.kind == "frame" and one.side == "request" and not one.awaits:
            yield Exchange(one, None)
        elif one.kind == "frame" and one.side == "request":
            waiting[connection][one.exchange] = one
        elif one.kind == "frame":
            yield Exchange(waiting[connection].pop(one.exchange, None), one)
    left = (request for requests in waiting.values() for request in requests.values())
    for request in sorted(left, key=TIME):
        yield Exchange(request, None)
