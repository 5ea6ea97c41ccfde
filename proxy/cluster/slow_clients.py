"""Ends connections whose client begins a request and does not go on, or does not take its answers.

A client of which some bytes move is not slow, however long its frame is. Nothing is counted for each read:
the links are looked at now and then, and the kernel knows how many bytes have moved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import NamedTuple

from klamm.proxy import config
from klamm.proxy.edge import sockets
from klamm.proxy.edge.ends import OPEN
from klamm.proxy.edge.idle import moved
from klamm.proxy.edge.link import Link
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import broker_label

LEAST = 4096  # bytes: a client of which so many move within the limit is not slow
LOOKS = 4  # within a limit
AT_ONCE = 256  # links: then other connections have their turn
OFF_S = 60.0  # where there is no limit: a reload may set one
SLOW = "a client does not go on with a request: fewer than {} bytes of it in {:g} s (limits.frame_s)"
UNREAD = "a client does not take what is sent to it: fewer than {} bytes in {:g} s (limits.unread_s)"


class Due(NamedTuple):
    """Bytes that have to move until something is done, at least. `since`: tells a frame that klamm keeps from
    the next (ns).
    """

    size: int
    since: int = 0


class Seen(NamedTuple):
    """The bytes that were due on a connection at a time (s), and the bytes that had moved by then."""

    at: float
    due: Due
    moved: int


class Way(NamedTuple):
    """One way of bytes. `of`: its place in what `moved` gives."""

    kind: str
    limit: Callable[[config.Limits], float | None]
    of: int
    due: Callable[[Link], Due | None]
    message: str


def _request_due(link: Link) -> Due | None:
    """The rest of a request that has begun, where klamm reads it."""
    client = link.client
    if client.state != OPEN or client.paused_for or client.ended:
        return None
    requests = link.session.requests
    if requests.kept_size:
        return Due(LEAST, requests.since)
    return Due(requests.left) if requests.left else None


def _answers_due(link: Link) -> Due | None:
    """Bytes that were sent to the client, and that it has not taken."""
    unsent = sockets.unsent(link.client.transport)
    return Due(unsent) if unsent else None


WAYS = (
    Way("slow_request", lambda limits: limits.frame_s, 0, _request_due, SLOW),
    Way("unread_answers", lambda limits: limits.unread_s, 1, _answers_due, UNREAD),
)


class SlowClients:
    """Looks at the links of a cluster as long as there are any, for one way of their bytes."""

    def __init__(
        self,
        way: Way,
        cluster: str,
        links: Collection[Link],
        stats: Stats,
        limits: Callable[[], config.Limits],
    ) -> None:
        self.way, self.cluster, self.links, self.stats, self.limits = way, cluster, links, stats, limits
        self.seen: dict[int, Seen] = {}  # by number of the connection
        self.runs = False

    @property
    def limit_s(self) -> float | None:
        return self.way.limit(self.limits())

    def begin(self) -> None:
        """There is a link."""
        if not self.runs:
            self.runs = True
            self._wait()

    def _wait(self) -> None:
        after_s = (self.limit_s or OFF_S * LOOKS) / LOOKS
        asyncio.get_running_loop().call_later(after_s, self._begin_look)

    def _begin_look(self) -> None:
        before, self.seen = self.seen, {}
        self._go_on(iter(list(self.links)), before)

    def _go_on(self, rest: Iterator[Link], before: dict[int, Seen]) -> None:
        loop, some = asyncio.get_running_loop(), list(islice(rest, AT_ONCE))
        self.look(some, before, loop.time())
        if some:
            loop.call_later(0, self._go_on, rest, before)
        elif self.links:
            self._wait()
        else:
            self.runs = False

    def look(self, links: Collection[Link], before: dict[int, Seen], now: float) -> None:
        """End those that are slow by this time (s), since they were seen `before`. Links without a broker and
        those whose end has begun have other limits.
        """
        limit_s = self.limit_s
        if limit_s is None:
            return
        for link in links:
            due = self.way.due(link) if link.broker is not None and link.reason is None else None
            found = None if due is None else moved(link.client.transport)
            if due is None or found is None:
                continue
            seen, size = before.get(link.number), found[self.way.of]
            if seen is None or due.since != seen.due.since or size - seen.moved >= min(seen.due.size, LEAST):
                seen = Seen(now, due, size)
            self.seen[link.number] = seen
            if now - seen.at >= limit_s:
                self._end(link, limit_s)

    def _end(self, link: Link, limit_s: float) -> None:
        kind = self.way.kind
        self.stats.problems[self.cluster, broker_label(link.target), "", kind] += 1
        link.event(kind, "", self.way.message.format(LEAST, limit_s), None)
        link.finish(kind, reset=kind == "unread_answers")
