"""A snapshot: counters that are copied on the loop, in short turns, and then rendered in any thread."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, TypeVar

from klamm.client.types import Capture
from klamm.proxy.config_types import Address
from klamm.proxy.session.observing.counters import Stats
from klamm.proxy.session.rewriting.topology import Node
from klamm.rules.state import CountedRule
from klamm.settings.certificates import Validity

T = TypeVar("T")
STATES = ("starting", "ready", "degraded", "draining")  # of a cluster

TURN = 100  # counters copied before the loop may do something else: half a millisecond


@dataclass(frozen=True, slots=True)
class NodeState:
    """A broker or controller as the cluster names it, and klamm's listener for it; both are "host:port", and
    the same where clients keep the brokers' addresses.
    `up`: whether the last attempt to connect to it succeeded; None: there was none. `remembered`: it is of
    the run before, and no response has named it in this one. `unbound`: why klamm has no listener for it.
    """

    kind: Literal["broker", "controller"]
    node_id: int
    upstream: str
    listening: str
    up: bool | None = None
    remembered: bool = False
    unbound: str = ""

    @classmethod
    def of(cls, node: Node, host: str | None, up: bool | None, remembered: bool, unbound: str) -> NodeState:
        upstream = str(Address(node.host, node.port))
        listening = upstream if host is None else ""
        if host is not None and node.listen_port and not unbound:
            listening = str(Address(host, node.listen_port))
        return cls(node.key.kind, node.key.node_id, upstream, listening, up, remembered, unbound)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """`bootstrap`: the bootstrap servers for klamm; `listening`: that for clients; `reason`: why not ready.
    `controllers_only`: klamm was given a controller's address, which names no broker. `named`: a response to
    klamm or to a client has named a broker in this run.
    """

    name: str
    bootstrap: tuple[str, ...]
    listening: str
    cluster_id: str | None = None
    ready: bool = False
    reason: str = ""
    nodes: tuple[NodeState, ...] = ()
    controllers_only: bool = False
    named: bool = False
    sasl: bool | None = None  # do brokers want SASL? None until one has answered
    tls: bool = False  # do clients speak TLS to klamm?
    transparent: bool = False  # do clients keep the brokers' addresses?
    found: bool = False  # have clients been let in?
    draining: bool = False
    one_port: bool = False  # do all nodes share it, by names?
    ends_sasl: bool = False  # do clients authenticate with klamm?

    @property
    def state(self) -> Literal["starting", "ready", "degraded", "draining"]:
        """degraded: clients are served, but the cluster did not answer last, one of its nodes did not, or
        klamm has no listener for one.
        """
        if self.draining:
            return "draining"
        if not self.found:
            return "starting"
        troubled = any(node.up is False or node.unbound for node in self.nodes)
        return "ready" if self.ready and not troubled else "degraded"


@dataclass(frozen=True, slots=True)
class RuleState:
    """A rule in force: the number of its matches, of those it acted on, and of actions that failed."""

    name: str
    matches: int
    hits: int
    failures: int

    @classmethod
    def of(cls, counted: CountedRule) -> RuleState:
        return cls(counted.rule.name, counted.matches, counted.hits, counted.failures)


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """The numbers of rules that act now, of the file and by hand: switched on, not dry, and not over.
    `without_end`: those by hand that only a person ends. `file_rejected`: the file on disk has mistakes,
    and the rules before it are in force; None: there is no file.
    """

    file: int = 0
    hand: int = 0
    without_end: int = 0
    file_rejected: bool | None = None


class WorkerCounts(NamedTuple):
    """`serving`: the processes that serve connections now. `died`: how many have, ever. `usage`: resources
    that each worker takes, by its number, as they were taken last.
    """

    serving: int = 1
    died: int = 0
    usage: Mapping[int, Mapping[str, float]] = MappingProxyType({})


class Certificate(NamedTuple):
    """A certificate of klamm's own: who sees it, and until when it is valid (s since the epoch)."""

    cluster: str  # "" for callers of the admin API
    shown_to: Literal["clients", "brokers", "callers"]
    valid_until: float

    @classmethod
    def of(
        cls, cluster: str, shown_to: Literal["clients", "brokers", "callers"], validity: Validity | None
    ) -> Iterator[Certificate]:
        """None where klamm shows no certificate."""
        if validity is not None:
            yield cls(cluster, shown_to, validity.last.timestamp())


class State(Protocol):
    """The state of a running proxy. Its methods are called on the loop and return at once, but for
    `refresh`.
    """

    async def refresh(self) -> None:
        """Ask the workers for their parts, if there are workers: the other methods tell of all together."""

    def counters(self) -> Stats: ...

    def workers(self) -> WorkerCounts: ...

    @property
    def metering(self) -> Literal["full", "header"]: ...

    @property
    def started_at(self) -> float:
        """Seconds since the epoch."""

    def clusters(self) -> Sequence[ClusterState]: ...

    def in_flight(self) -> Mapping[tuple[str, str], int]:
        """(cluster, broker) -> requests that wait for their response."""

    def rule_states(self) -> Iterable[RuleState]:
        """The rules in force, in the order of their file. The loop may do something else between two."""

    def rule_counts(self) -> RuleCounts: ...

    def frames_paused(self) -> int:
        """Frames that wait for somebody's decision."""

    def draining(self) -> bool:
        """Does klamm end its connections one by one, and take no new ones?"""

    def config_rejected(self) -> bool | None:
        """Does klamm.yaml on the disk have mistakes? None: there is no such file."""

    def certificates(self) -> Iterable[Certificate]: ...

    def audit_dropped(self) -> int:
        """Lines of the audit log that were dropped."""

    def log_dropped(self) -> int:
        """Log lines that were dropped because the queue was full, ever."""

    def capture_state(self) -> Capture | None:
        """The capture that runs, if any."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`stats` is a copy that nobody adds to. Times are seconds since the epoch."""

    version: str
    pid: int
    started_at: float
    now: float
    metering: Literal["full", "header"]
    clusters: tuple[ClusterState, ...]
    stats: Stats
    workers: WorkerCounts
    in_flight: Mapping[tuple[str, str], int]
    rules: tuple[RuleState, ...]
    rule_counts: RuleCounts
    frames_paused: int
    draining: bool
    config_rejected: bool | None
    certificates: tuple[Certificate, ...]
    log_dropped: int
    audit_dropped: int
    capture: Capture | None


async def take(state: State) -> Snapshot:
    """A snapshot. Each of its counters is of one moment; two may be some turns of the loop apart."""
    await state.refresh()
    return Snapshot(
        version=product_version(),
        pid=os.getpid(),
        started_at=state.started_at,
        now=time.time(),
        metering=state.metering,
        clusters=tuple(state.clusters()),
        stats=await _copy_of(state.counters()),
        workers=state.workers(),
        in_flight=dict(state.in_flight()),
        rules=tuple(await _in_turns(state.rule_states())),
        rule_counts=state.rule_counts(),
        frames_paused=state.frames_paused(),
        draining=state.draining(),
        config_rejected=state.config_rejected(),
        certificates=tuple(state.certificates()),
        log_dropped=state.log_dropped(),
        audit_dropped=state.audit_dropped(),
        capture=state.capture_state(),
    )


async def _in_turns(states: Iterable[T]) -> list[T]:
    found: list[T] = []
    for each in states:
        found.append(each)
        if len(found) % TURN == 0:
            await asyncio.sleep(0)
    return found


async def _copy_of(stats: Stats) -> Stats:
    copy = Stats(stats.max_clients, stats.max_topics)
    copy.connections = Counter(stats.connections)
    copy.opened = Counter(stats.opened)
    copy.closed = Counter(stats.closed)
    copy.reauthentications = Counter(stats.reauthentications)
    copy.principals = Counter(stats.principals)
    copy.software = Counter(stats.software)
    copy.logins = Counter(stats.logins)
    copy.instances = Counter(stats.instances)
    copy.problems = Counter(stats.problems)
    copy.opaque = Counter(stats.opaque)
    copy.traced = Counter(stats.traced)
    copy.unanswered = Counter(stats.unanswered)
    for turn, (key, each) in enumerate(list(stats.requests.items())):
        if turn % TURN == TURN - 1:
            await asyncio.sleep(0)
        copy.requests[key] = each.copy()
    for turn, (name, topic) in enumerate(list(stats.topics.items())):
        if turn % TURN == TURN - 1:
            await asyncio.sleep(0)
        copy.topics[name] = topic.copy()
    return copy


def product_version() -> str:
    """The version of klamm."""
    from importlib.metadata import PackageNotFoundError, version  # 2 MiB

    try:
        return version("klamm")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"
