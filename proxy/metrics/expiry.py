"""Forgets labels of clients, topics and principals that nobody uses, so that others have their places."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Set
from typing import Generic, TypeVar

from klamm.proxy.metrics.snapshot import TURN
from klamm.proxy.session.observing.counters import ClusterLabel, Stats

EACH_S = 10.0
CROWDED_S = 30.0  # a label has to be idle so long where there was no place for another one

Label = TypeVar("Label", str, ClusterLabel)


class Labels(Generic[Label]):
    """Knows since when labels are idle."""

    def __init__(self) -> None:
        self.since: dict[Label, float] = {}
        self.uses: Counter[Label] = Counter()

    def idle(self, labels: Set[Label], uses: Counter[Label], now_s: float, for_s: float) -> set[Label]:
        """Labels that were used no further for so long. `uses`: so often each was used so far."""
        self.since = {
            label: self.since.get(label, now_s) for label in labels if uses[label] == self.uses[label]
        }
        self.uses = uses
        return {label for label, since in self.since.items() if now_s - since >= for_s}


class Expiry:
    """`changed` is called after labels are forgotten: connections have to look their counters up again."""

    def __init__(
        self,
        stats: Stats,
        expire_s: float,
        changed: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.stats, self.expire_s, self.changed, self.clock = stats, expire_s, changed, clock
        self.clients = Labels[str]()
        self.topics = Labels[ClusterLabel]()
        self.principals = Labels[ClusterLabel]()
        self.sweeps = 0

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(EACH_S)
            await self.sweep()

    async def sweep(self) -> None:
        """Forget the labels that are idle for too long."""
        stats, now_s = self.stats, self.clock()
        for_s = min(self.expire_s, CROWDED_S) if stats.crowded else self.expire_s
        self.sweeps += 1
        clients = self.clients.idle(stats.clients, await self._requests(), now_s, for_s)
        topics = self.topics.idle(stats.topic_names, await self._topics(), now_s, for_s)
        principals = self.principals.idle(stats.principal_names, self._connections(), now_s, for_s)
        if clients or topics or principals:
            stats.forget(clients, topics, principals)
            self.changed()

    async def _requests(self) -> Counter[str]:
        """Requests and responses by client."""
        found = Counter[str]()
        for turn, each in enumerate(list(self.stats.requests.values()), 1):
            found[each.client_id] += each.requests + each.responses
            if turn % TURN == 0:
                await asyncio.sleep(0)
        return found

    async def _topics(self) -> Counter[ClusterLabel]:
        """Requests by topic, and errors, which responses alone may name."""
        found = Counter[ClusterLabel]()
        for turn, each in enumerate(list(self.stats.topics.values()), 1):
            found[each.cluster, each.topic] += each.requests + each.errors.total()
            if turn % TURN == 0:
                await asyncio.sleep(0)
        return found

    def _connections(self) -> Counter[ClusterLabel]:
        """A number that changes with each sweep, of principals that have connections."""
        return Counter({label: self.sweeps for label, count in self.stats.principals.items() if count > 0})
