"""The state of the whole process, its workers included, for metrics and the admin API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import time
from typing import TYPE_CHECKING, Any

from klamm.proxy.admin.http_servers import HttpServers
from klamm.proxy.cluster.clusters import Clusters
from klamm.proxy.control.config_file import ConfigFile
from klamm.proxy.control.intercept import Intercept
from klamm.proxy.control.listeners import Exchanges
from klamm.proxy.control.process.drain import Drain
from klamm.proxy.control.rule_files import RuleReload
from klamm.proxy.log.audit import Audit
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.metrics.snapshot import Certificate, ClusterState, RuleCounts, RuleState, WorkerCounts
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.workers.lead import Lead

if TYPE_CHECKING:
    from klamm.client.types import Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    """Implements snapshot.State. `lead` None: klamm is one process, or this is a worker."""

    stats: Stats
    running: Clusters
    rules: RuleReload
    exchanges: Exchanges
    intercept: Intercept
    drain: Drain
    config_file: ConfigFile
    http: HttpServers
    log: EventLog
    audit: Audit | None
    capture_state: Callable[[], Capture | None]
    lead: Lead | None
    started_at: float = field(default_factory=time)

    @property
    def metering(self) -> Any:
        return self.exchanges.metering

    async def refresh(self) -> None:
        if self.lead is not None:
            await self.lead.refresh()

    def counters(self) -> Stats:
        return self.stats if self.lead is None else self.lead.stats()

    def workers(self) -> WorkerCounts:
        return WorkerCounts() if self.lead is None else self.lead.counts()

    def clusters(self) -> Sequence[ClusterState]:
        return [proxied.state() for proxied in self.running.now]

    def in_flight(self) -> Mapping[tuple[str, str], int]:
        total: Counter[tuple[str, str]] = Counter()
        for proxied in self.running.now:
            total.update(proxied.in_flight())
        if self.lead is not None:
            total.update(self.lead.in_flight())
        return total

    def rule_states(self) -> Iterable[RuleState]:
        listening = self.rules.book.listening
        return (RuleState.of(t) for t in self.rules.engine.counted_rules if t.rule.name not in listening)

    def rule_counts(self) -> RuleCounts:
        return replace(self.rules.book.counts(), file_rejected=self.rules.rejected)

    def frames_paused(self) -> int:
        return len(self.intercept.waiting) + self._of_workers("frames_paused")

    def draining(self) -> bool:
        return self.drain.under_way

    def config_rejected(self) -> bool | None:
        return None if self.config_file.source is None else bool(self.config_file.mistakes)

    def certificates(self) -> Iterable[Certificate]:
        return [*self.running.certificates(), *self.http.certificates()]

    def audit_dropped(self) -> int:
        return (0 if self.audit is None else self.audit.dropped) + self._of_workers("audit_dropped")

    def log_dropped(self) -> int:
        return self.log.dropped + self._of_workers("log_dropped")

    def _of_workers(self, name: str) -> int:
        return 0 if self.lead is None else sum(getattr(part, name) for part in self.lead.parts)
