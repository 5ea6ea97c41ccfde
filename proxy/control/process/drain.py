"""Ends klamm without an error for its clients: no new connections, and each ends between two exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

from klamm.proxy.log.events import Events

DRAINED = "drained"


class Drained(Protocol):
    """The connections of one cluster."""

    async def drain(self, reason: str, within_s: float) -> int:
        """Take no new connections, and end each that is there. Gives the number of those cut off, or of
        which that is not known.
        """

    def open_links(self) -> int: ...
    def waiting_requests(self) -> int: ...


class Drain:
    """`asked` is set by the first wish for it. `under_way` from then on, until klamm ends."""

    def __init__(self, clusters: Sequence[Drained], log: Events, within_s: float) -> None:
        self.clusters, self.log, self.within_s = clusters, log, within_s
        self.asked = asyncio.Event()
        self.began: Callable[[], None] = lambda: None

    @property
    def under_way(self) -> bool:
        return self.asked.is_set()

    def begin(self, why: str, within_s: float | None = None) -> None:
        """Begin, or do nothing if it has begun. `why` goes to the log."""
        if self.under_way:
            return
        self.within_s = self.within_s if within_s is None else within_s
        links, waiting = self.left()
        message = (
            f"{why}: klamm drains for {self.within_s:g} s at most; connections: {links}, "
            f"requests under way: {waiting}"
        )
        self.log.event("draining", message, connections=links, requests=waiting, within_s=self.within_s)
        self.asked.set()
        self.began()

    def left(self) -> tuple[int, int]:
        """Connections that are open, and requests that wait for their answers."""
        links = sum(each.open_links() for each in self.clusters)
        return links, sum(each.waiting_requests() for each in self.clusters)

    async def run(self) -> int:
        """Wait until it is asked for, then drain. Gives the number of connections that were cut off with
        requests under way.
        """
        await self.asked.wait()
        began = monotonic()
        cut = sum(await asyncio.gather(*(each.drain(DRAINED, self.within_s) for each in self.clusters)))
        if cut:
            connections = "1 connection was" if cut == 1 else f"{cut} connections were"
            message = (
                f"{connections} cut off after {self.within_s:g} s, with requests that were "
                "under way, or may have been"
            )
            self.log.event("drained", message, "warning", connections=cut)
        else:
            self.log.event("drained", f"every connection has ended after {monotonic() - began:.1f} s")
        return cut
