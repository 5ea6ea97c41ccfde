"""Whether a cluster answers klamm, and the lines of the log about it."""

from __future__ import annotations

from collections.abc import Sequence

from klamm.proxy.config_types import Address
from klamm.proxy.log.event_log import EventLog


class Readiness:
    """`reason`: why it is not ready. `changes` counts how often that has changed. `probed`: its nodes answer
    probes, as those of Kafka 0.10 and newer do.
    """

    def __init__(self, cluster: str, bootstrap: Sequence[Address], log: EventLog) -> None:
        self.cluster, self.log = cluster, log
        self.ready = False
        self.reason = f"bootstrap servers {', '.join(map(str, bootstrap))} have not answered yet"
        self.changes = 0
        self.probed = True
        self._probes = 0  # that were answered while it is not ready

    def not_found(self, why: str) -> None:
        """It has not answered since the start."""
        if self.reason != why:
            message = f"{why}; trying again"
            self.log.event("unreachable", message, "error", cluster=self.cluster, per=why)
        self.reason = why

    def found(self) -> None:
        """The cluster has answered, and its clients may come."""
        self.ready, self.reason = True, ""
        self.changes += 1

    def lost(self, why: str) -> None:
        """It does not answer."""
        if self.ready:
            self.log.event("unreachable", f"{why}; trying again", "error", cluster=self.cluster)
            self.changes += 1
        self.ready, self.reason = False, why

    def unanswered(self, why: str) -> None:
        """A probe was not answered."""
        self.lost(why)
        self._probes = 0

    def answered(self) -> None:
        """It answers."""
        if not self.ready:
            self.log.event("reachable", "the cluster answers again", cluster=self.cluster, ends="unreachable")
            self.found()
        self._probes = 0

    def asks_again(self) -> bool:
        """A probe was answered: is the cluster not ready, and should klamm ask it for its nodes, to find out
        whether it is now? At the first such probe, the second, the fourth: it may refuse klamm's credentials
        each time.
        """
        self._probes += not self.ready
        return not self.ready and self._probes & (self._probes - 1) == 0
