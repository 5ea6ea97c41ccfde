"""One moment of the counters: copied on the loop in short turns, then rendered in any thread."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal, Protocol

from klamm.client.types import Capture
from klamm.proxy.config import Address
from klamm.proxy.session.counters import Stats
from klamm.proxy.session.topology import Node
from klamm.rules.state import Tally

TURN = 100  # counters copied before the loop may do something else: half a millisecond


@dataclass(frozen=True, slots=True)
class NodeState:
    """A broker or controller as the cluster names it, and klamm's listener for it; both are "host:port".
    `up`: whether the last attempt to connect to it succeeded; None: there was none. `remembered`: it is of
    the run before, and nothing has named it in this one. `unbound`: why klamm has no listener for it.
    """

    kind: Literal["broker", "controller"]
    node_id: int
    upstream: str
    listening: str
    up: bool | None = None
    remembered: bool = False
    unbound: str = ""

    @classmethod
    def of(cls, node: Node, host: str, up: bool | None, remembered: bool, unbound: str) -> NodeState:
        listening = str(Address(host, node.listen_port)) if node.listen_port and not unbound else ""
        upstream = str(Address(node.host, node.port))
        return cls(node.key.kind, node.key.node_id, upstream, listening, up, remembered, unbound)


@dataclass(frozen=True, slots=True)
class ClusterState:
    """`bootstrap` is where klamm finds the cluster, `listening` where clients do; `reason`: why not ready.
    `controllers_only`: klamm was given a controller's address, which names no broker. `named`: the cluster,
    or an answer to a client, has named a broker in this run; behind SASL that takes a client.
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
    sasl: bool | None = None  # do brokers want it? None until one has answered


@dataclass(frozen=True, slots=True)
class RuleState:
    """A rule in force: what it matched, on what of it the rule acted, and actions that failed."""

    name: str
    matches: int
    hits: int
    failures: int

    @classmethod
    def of(cls, tally: Tally) -> RuleState:
        return cls(tally.rule.name, tally.matches, tally.hits, tally.failures)


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """How many rules act now, of the file and by hand: they are switched on, not dry, and not over.
    `without_end`: those by hand that nothing but a person ends. `file_rejected`: the file on disk has
    mistakes, and the rules of before are in force; None: there is no file.
    """

    file: int = 0
    hand: int = 0
    without_end: int = 0
    file_rejected: bool | None = None


class State(Protocol):
    """What a running proxy tells about itself. Called on the loop: the methods return at once."""

    @property
    def stats(self) -> Stats: ...

    @property
    def metering(self) -> Literal["full", "header"]: ...

    @property
    def started_at(self) -> float:
        """Seconds since the epoch."""

    def clusters(self) -> Sequence[ClusterState]: ...

    def in_flight(self) -> Mapping[tuple[str, str], int]:
        """(cluster, broker) -> requests that wait for their response."""

    def rule_states(self) -> Sequence[RuleState]:
        """The rules in force, in the order of their file."""

    def rule_counts(self) -> RuleCounts: ...

    def frames_paused(self) -> int:
        """Frames that wait for somebody's decision."""

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
    in_flight: Mapping[tuple[str, str], int]
    rules: tuple[RuleState, ...]
    rule_counts: RuleCounts
    frames_paused: int
    log_dropped: int
    capture: Capture | None


async def take(state: State) -> Snapshot:
    """A snapshot. Each of its counters is of one moment; two may be some turns of the loop apart."""
    return Snapshot(
        version=product_version(),
        pid=os.getpid(),
        started_at=state.started_at,
        now=time.time(),
        metering=state.metering,
        clusters=tuple(state.clusters()),
        stats=await _copy_of(state.stats),
        in_flight=dict(state.in_flight()),
        rules=tuple(state.rule_states()),
        rule_counts=state.rule_counts(),
        frames_paused=state.frames_paused(),
        log_dropped=state.log_dropped(),
        capture=state.capture_state(),
    )


async def _copy_of(stats: Stats) -> Stats:
    copy = Stats(stats.max_clients, stats.max_topics)
    copy.connections = Counter(stats.connections)
    copy.opened = Counter(stats.opened)
    copy.closed = Counter(stats.closed)
    copy.software = Counter(stats.software)
    copy.problems = Counter(stats.problems)
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
    """klamm's own."""
    try:
        return version("klamm")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"
