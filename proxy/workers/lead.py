"""The lead's work for its workers: what one of them learns, the others get; what people change, all get; and
their counters are added up.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

from klamm.proxy.cluster.client_ports.ports import Port
from klamm.proxy.cluster.client_ports.shared import Shared
from klamm.proxy.cluster.cluster import Proxied
from klamm.proxy.config import Admin, Config, State
from klamm.proxy.config_types import Bytes, Count
from klamm.proxy.control.rule_files import RuleReload
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.metrics.snapshot import WorkerCounts
from klamm.proxy.metrics.summing import add, taken
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import NodeKey
from klamm.proxy.workers.captures import WorkersCaptures
from klamm.proxy.workers.channel import Call
from klamm.proxy.workers.live import Asked, LiveReader
from klamm.proxy.workers.messages import Boot, Groups, Learned, Lines, Part
from klamm.proxy.workers.processes import Worker, Workers
from klamm.proxy.workers.topologies import Learning, nodes_of, take_learned

RELOAD_S = 30.0  # for a worker to read the files of new settings
LOOK_S = 0.1  # between two checks for what is new
DIED = "its worker died"
Refuse = Callable[[NodeKey | None, tuple[str, int], str, str], None]
Counts = tuple[int, int, int, int | None]
CUT_S = 2.0  # longer than the workers may take is given for the end of a drain


class Owner(Protocol):
    """The lead's proxy."""

    config: Config
    stats: Stats
    shared: Shared
    rules: RuleReload
    log: EventLog
    proxied: list[Proxied]


class Lead:
    """Owns the workers. Implements processes.Owner, and control.drain.Drained for connections of workers."""

    def __init__(self, owner: Owner, processes: int) -> None:
        self.owner, self.log = owner, owner.log
        calls: dict[str, Call] = {
            "bind": self._bind,
            "groups": self._groups,
            "learned": self._learned,
            "lines": self._lines,
        }
        self.workers = Workers(processes, self, owner.shared.room, owner.log, calls)
        self.learning: dict[Proxied, Learning] = {}
        self.told: dict[str, object] = {}  # of each cluster, as it was told last
        self.follower: asyncio.Task[None] | None = None
        self.ended = Stats()  # of workers that died
        self.before: list[tuple[tuple[str, int], Counts]] = []  # likewise, of rules
        self.parts: list[Part] = []
        self.readers: dict[int, LiveReader] = {}
        self.numbers = count(1)
        self.captures = WorkersCaptures(self.workers, owner.log, self.parts)

    def hand_over(self, cluster: str, refuse: Refuse) -> Callable[[Port], HandOver]:
        """The way to the workers for the connections of this cluster's ports."""
        return lambda port: HandOver(self, cluster, port, refuse)

    async def start(self) -> None:
        """Gives when all workers are ready. Raises OSError if one ends before that."""
        self.workers.start()
        await self.workers.up
        self.follower = asyncio.get_running_loop().create_task(self._follow())

    async def stop(self) -> None:
        if self.follower is not None:
            self.follower.cancel()
        await self.workers.stop()

    def counts(self) -> WorkerCounts:
        ready = self.workers.ready
        usage = {each.slot + 1: each.last.usage for each in ready if each.last is not None}
        return WorkerCounts(len(ready), self.workers.died, usage)

    # processes.Owner

    def opened(self, cluster: str) -> None:
        """A client has come."""
        found = self._cluster(cluster)
        if found is not None:
            found.had_client = True

    def boot(self, slot: int) -> Boot:
        engine = self.owner.rules.engine
        return Boot(
            slot, of_worker(self.owner.config, self.workers.count), engine.seed, engine.wall_offset_ns
        )

    def joined(self, worker: Worker) -> None:
        """Give it all that the others have."""
        for each in self.owner.proxied:
            worker.channel.tell(
                "nodes",
                each.settings.name,
                nodes_of(each.topology, each.bootstrap_port, each.let_in),
            )
            names = list(each.topology.topic_names.items())
            worker.channel.tell("learned", each.settings.name, Learned([], names))
        worker.channel.tell("rules", *self._rules())
        known = self.owner.rules.engine.groups.known.items()
        worker.channel.tell("groups", [(client, group) for client, groups in known for group in groups])
        if self.captures.running is not None:
            worker.channel.tell("capture", self.captures.running.settings)
        for number, reader in self.readers.items():
            worker.channel.tell("live", number, *reader.asked)

    def left(self, worker: Worker) -> None:
        """Its counters, as they were taken last, go on counting."""
        if worker.last is not None:
            add(self.ended, worker.last.counters, ended=True)
            now = {(each.rule.name, each.started_ns) for each in self.owner.rules.engine.counted_rules}
            self.before = [*self.before, *worker.last.rules.items()]
            self.before = [each for each in self.before if each[0] in now]
        for known in worker.connections.values():
            if known is not None:
                self.ended.closed[known.cluster, DIED] += 1

    # State that all workers share.

    async def _follow(self) -> None:
        """Tell the workers what is new about the clusters, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.spread()

    def spread(self) -> None:
        """Tell the workers all that this process has learned since the last call."""
        for each in self.owner.proxied:
            name = each.settings.name
            learning = self.learning.get(each) or self.learning.setdefault(each, Learning(each.topology))
            new = learning.new()
            if new is not None and new.topics:
                self.workers.tell("learned", name, Learned([], new.topics))
            topology, let_in = each.topology, each.let_in
            seen = (
                topology.revision,
                len(topology.remembered),
                topology.cluster_id,
                each.bootstrap_port,
                let_in,
            )
            if seen != self.told.get(name):
                self.told[name] = seen
                self.workers.tell("nodes", name, nodes_of(topology, each.bootstrap_port, let_in))

    def _learned(self, worker: Worker, cluster: str, learned: Learned) -> None:
        each = self._cluster(cluster)
        if each is not None:
            take_learned(each.topology, learned)
            self.spread()
            if each.topology.unbound():
                each.keep(each.bind())

    def _groups(self, worker: Worker, groups: Groups) -> None:
        for client, group in groups:
            self.owner.rules.engine.groups.add(client, group)
        self.workers.tell("groups", groups, but=worker)

    async def _bind(self, worker: Worker, cluster: str, learned: Learned) -> None:
        """Open ports for nodes that a worker has learned; it gets them before the answer."""
        each = self._cluster(cluster)
        if each is not None:
            take_learned(each.topology, learned)
            await each.bind()
            self.spread()

    def _cluster(self, name: str) -> Proxied | None:
        return next((each for each in self.owner.proxied if each.settings.name == name), None)

    # Rules.

    def rules_changed(self) -> None:
        """All workers get the rules as they are now."""
        self.workers.tell("rules", *self._rules())

    def _rules(self) -> tuple[tuple[str, ...], bytes]:
        """The files of plugins, and a pickle that needs their classes."""
        rules, book = self.owner.rules, self.owner.rules.book
        known = [
            (counted.rule, counted.started_ns)
            for counted in rules.engine.counted_rules
            if counted.rule.name not in book.listening
        ]
        return rules.plugins, pickle.dumps(known, pickle.HIGHEST_PROTOCOL)

    async def reload(self, config: Config) -> None:
        """All workers use these settings. One that cannot is replaced by one that begins with them."""
        asked = set(self.workers.ready)
        answers = await self.workers.ask("reload", of_worker(config, self.workers.count), within_s=RELOAD_S)
        for worker in asked - {worker for worker, _ in answers}:
            self.workers.end(worker, "it cannot use the new settings")
        self.told.clear()
        self.learning.clear()

    # Exchanges as they happen.

    def live(self, *asked: *Asked) -> LiveReader:
        """Exchanges of all workers from now on."""
        number = next(self.numbers)

        def ended() -> None:
            del self.readers[number]
            self.workers.tell("live_end", number)

        reader = self.readers[number] = LiveReader(asked, ended)
        self.workers.tell("live", number, *asked)
        return reader

    async def _lines(self, worker: Worker, number: int, lines: Lines) -> bool:
        reader = self.readers.get(number)
        return reader is not None and await reader.put(lines)

    # Counters.

    async def refresh(self) -> None:
        """Take the counters of all workers; those of rules become the counts of the lead's own rules."""
        for worker, part in await self.workers.ask("part"):
            worker.last = part
        self.parts[:] = [each.last for each in self.workers.ready if each.last is not None]
        sums: dict[tuple[str, int], list[int]] = {}
        first: dict[tuple[str, int], int] = {}
        rules = [*self.before, *(item for part in self.parts for item in part.rules.items())]
        for key, (matches, hits, failures, first_ns) in rules:
            sum_ = sums.setdefault(key, [0, 0, 0])
            sum_[:] = [sum_[0] + matches, sum_[1] + hits, sum_[2] + failures]
            if first_ns is not None:
                first[key] = min(first_ns, first.get(key, first_ns))
        for counted in self.owner.rules.engine.counted_rules:
            key = counted.rule.name, counted.started_ns
            if key in sums:
                counted.matches, counted.hits, counted.failures = sums[key]
                counted.first_match_ns = first.get(key)

    def stats(self) -> Stats:
        """All counters, as they were taken last."""
        own = self.owner.stats
        found = Stats(own.max_clients, own.max_topics)
        for each in (taken(own), taken(self.ended), *(part.counters for part in self.parts)):
            add(found, each)
        return found

    def in_flight(self) -> Counter[tuple[str, str]]:
        total: Counter[tuple[str, str]] = Counter()
        for part in self.parts:
            total.update(part.in_flight)
        return total

    # control.drain.Drained

    def open_links(self) -> int:
        return sum(len(each.connections) for each in self.workers.ready)

    def waiting_requests(self) -> int:
        """As they were counted last."""
        return sum(self.in_flight().values())

    async def drain(self, reason: str, within_s: float) -> int:
        """End the connections of all workers. Gives the number of those cut off: all that are open of a
        worker that does not answer, since nobody knows of them.
        """
        asked = self.workers.ready
        answers = dict(await self.workers.ask("drain", reason, within_s, within_s=within_s + CUT_S))
        return sum(answers.get(each, len(each.connections)) for each in asked)


@dataclass(frozen=True, slots=True)
class HandOver:
    """Stands in for an Entrance: a connection goes to a worker, whose Entrance lets it in."""

    lead: Lead
    cluster: str
    port: Port
    refuse: Refuse

    def enter(self, sock: socket.socket, peer: tuple[str, int]) -> Coroutine[Any, Any, None]:
        """At once: `takes` counts it from now on."""
        self.lead.spread()  # the worker knows all that this port was opened for
        with sock:
            given = self.lead.workers.give(self.cluster, self.port.target, sock, peer)
        if not given:
            self.refused(peer, "too_many_connections", "no worker is ready")
        return asyncio.sleep(0)

    def takes(self, again: Callable[[], None]) -> bool:
        return self.lead.workers.take(again)

    def refused(self, peer: tuple[str, int], kind: str, why: str) -> None:
        self.refuse(self.port.target, peer, kind, why)


def of_worker(config: Config, count: int) -> Config:
    """The settings of one of so many workers: without what the lead does for all of them, and with its part
    of what is bounded for all together.
    """
    limits = replace(
        config.limits,
        connections=0,
        connections_per_address=Count(0),
        connections_per_principal=Count(0),
        connects_per_second=Count(0),
        held_bytes=Bytes(config.limits.held_bytes // count),
    )
    admin, metrics = Admin(listen=None), replace(config.metrics, listen=None)
    return replace(
        config,
        admin=admin,
        metrics=metrics,
        limits=limits,
        rules=None,
        state=State(None),
        capture=None,
        workers=Count(1),
    )
