"""Ends connections of one cluster between two exchanges: at their age, where nothing happens on them, or all
because klamm drains. Those of slow clients end at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import uniform

from klamm.proxy import config
from klamm.proxy.cluster.client_ports.ports import Ports
from klamm.proxy.cluster.slow_clients import WAYS, SlowClients
from klamm.proxy.edge.draining import CUT
from klamm.proxy.edge.idle import idle_s
from klamm.proxy.edge.link import Link
from klamm.proxy.edge.sockets import BROKER_VANISHED, CLIENT_VANISHED
from klamm.proxy.session.observing.counters import Stats

AGED, JITTER = "reached its age", (0.9, 1.1)  # so that connections of one moment end at different ones
IDLE = "was idle"
SAID = {  # reasons for the log -> the kind of the line, and its message
    IDLE: ("idle", "a connection ends on which no byte came or went for limits.idle_s"),
    CLIENT_VANISHED: ("vanished", "a client answers no packet any more: it has vanished without a word"),
    BROKER_VANISHED: ("vanished", "a broker answers no packet any more: it has vanished without a word"),
}
SOON_S = 0.01  # the kernel's clock and the loop's may differ by so much
CUT_S = 1.0  # a connection that is cut off has ended by then


class Leaving:
    """`links`: the connections that are open. Implements control.drain.Drained."""

    def __init__(
        self, cluster: str, links: Mapping[Link, object], ports: Ports, stats: Stats, limits: config.Limits
    ) -> None:
        self.cluster, self.links, self.ports, self.stats, self.limits = cluster, links, ports, stats, limits
        self.emptied = asyncio.Event()  # by the last connection that ended
        self.slow = [SlowClients(way, cluster, links, stats, lambda: self.limits) for way in WAYS]

    def opened(self, link: Link) -> None:
        """End it at its age, or before that where it is idle or slow."""
        limits, later = self.limits, asyncio.get_running_loop().call_later
        if limits.max_age_s is not None:
            age_s = limits.max_age_s * uniform(*JITTER)
            link.timers["age"] = later(age_s, link.drain, AGED, limits.drain_s)
        if limits.idle_s is not None:
            link.timers["idle"] = later(limits.idle_s, self._look, link, limits.idle_s)
        for each in self.slow:
            each.begin()

    def _look(self, link: Link, most_s: float) -> None:
        """End it if no byte has come or gone for so long, and no request waits for its answer."""
        idle = idle_s(link.client.transport)
        waits = link.broker is not None and link.session.pending()
        if idle >= most_s and not waits:
            link.drain(IDLE, self.limits.drain_s)
        else:
            rest_s = most_s if waits else max(most_s - idle, SOON_S)
            link.timers["idle"] = asyncio.get_running_loop().call_later(rest_s, self._look, link, most_s)

    def closed(self, link: Link, reason: str) -> None:
        """A connection has ended."""
        if reason in SAID:
            kind, message = SAID[reason]
            link.event(kind, "", message, None)
        if not self.links:
            self.emptied.set()

    def open_links(self) -> int:
        return len(self.links)

    def waiting_requests(self) -> int:
        return sum(link.in_flight() for link in self.links)

    async def drain(self, reason: str, within_s: float) -> int:
        """Take no new connections, and end each that is there. Gives the number of those that were cut off
        with requests under way.
        """
        self.ports.close()
        self.emptied.clear()
        cut = self.stats.closed[self.cluster, CUT]
        for link in list(self.links):
            link.drain(reason, within_s)
        if self.links:
            waiting = asyncio.create_task(self.emptied.wait())
            await asyncio.wait([waiting], timeout=within_s + CUT_S)
            waiting.cancel()
        return self.stats.closed[self.cluster, CUT] - cut
