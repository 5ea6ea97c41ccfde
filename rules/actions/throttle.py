"""throttle and rate: clients are told to wait, as a broker's quotas do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from klamm.decoders.schema import version_range
from klamm.rules.actions.answers import is_answered
from klamm.rules.frame import Frame, Part
from klamm.rules.parts import parts
from klamm.rules.quantities import Bytes, Duration
from klamm.rules.rule import Draw
from klamm.rules.verdict import Delay, Edit, OnAnswer, Order

MS, S = 1_000_000, 1_000_000_000
KEPT = 10_000  # of those who are limited; beyond it all are forgotten, and begin anew
FETCHING = frozenset({"Fetch", "ShareFetch"})
FIELD = "throttle_time_ms"

# From these versions on clients wait by themselves (KIP-219, AbstractResponse.shouldClientThrottle); below,
# and in APIs that are not here, only a late answer slows them.
HEEDED = {
    "Produce": "6+", "Fetch": "8+", "ListOffsets": "3+", "Metadata": "6+", "OffsetCommit": "4+",
    "OffsetFetch": "4+", "FindCoordinator": "2+", "JoinGroup": "3+", "Heartbeat": "2+", "LeaveGroup": "2+",
    "SyncGroup": "2+", "DescribeGroups": "2+", "ListGroups": "2+", "ApiVersions": "2+",
    "CreateTopics": "3+", "DeleteTopics": "2+", "DeleteRecords": "1+", "InitProducerId": "1+",
    "AddPartitionsToTxn": "1+", "AddOffsetsToTxn": "1+", "EndTxn": "1+", "TxnOffsetCommit": "1+",
    "DescribeAcls": "1+", "CreateAcls": "1+", "DeleteAcls": "1+", "DescribeConfigs": "2+",
    "AlterConfigs": "1+", "AlterReplicaLogDirs": "1+", "DescribeLogDirs": "1+", "CreatePartitions": "1+",
    "CreateDelegationToken": "1+", "RenewDelegationToken": "1+", "ExpireDelegationToken": "1+",
    "DescribeDelegationToken": "1+", "DeleteGroups": "1+", "AlterPartitionReassignments": "0+",
    "AlterUserScramCredentials": "0+", "BrokerHeartbeat": "0+", "BrokerRegistration": "0+",
    "DescribeTopicPartitions": "0+", "DescribeUserScramCredentials": "0+", "ElectLeaders": "0+",
    "IncrementalAlterConfigs": "0+", "ListPartitionReassignments": "0+", "OffsetDelete": "0+",
    "UnregisterBroker": "0+",
}  # fmt: skip


def throttled(answer: Frame, ns: int) -> list[Order]:
    """The answer with this throttle time, at once where clients heed it, else late."""
    said: list[Order] = []
    if FIELD in answer.values:
        said.append(Edit({**answer.values, FIELD: max(answer.values[FIELD], -(-ns // MS))}))
    if not said or answer.version not in version_range(HEEDED.get(answer.api.name)):
        said.append(Delay(ns))
    return said


def slowed(frame: Frame, ns: int) -> list[Order]:
    """Whoever asked this waits: a request that is not answered (acks=0) is held itself."""
    if frame.side == "response":
        return throttled(frame, ns)
    if not is_answered(frame):
        return [Delay(ns)]
    return [OnAnswer(lambda answer: throttled(answer, ns))]


@dataclass(frozen=True, slots=True)
class Throttle:
    """Tell the client to wait. Versions below KIP-219 do not listen: for them the answer is late instead."""

    name: ClassVar[str] = "throttle"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    time: Duration
    """How long: throttle_time_ms."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        return slowed(frame, self.time)


@dataclass(slots=True)
class Bucket:
    """What may pass now; it fills with time, up to a second's worth."""

    left: float
    at: int

    def wait(self, taken: float, limit: float, now: int) -> int:
        """How long (ns) who takes this has to wait."""
        self.left = min(limit, self.left + max(0, now - self.at) / S * limit) - taken
        self.at = now
        return round(max(0.0, -self.left) / limit * S)


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit in requests or bytes a second. Who goes beyond it is throttled, as by a broker's quota."""

    name: ClassVar[str] = "rate"
    sides: ClassVar[Sequence[str]] = ("request",)

    requests: float = 0
    """Requests a second; 0: no limit."""
    bytes: Bytes = Bytes(0)
    """Bytes a second, of requests, or of the answers to those that fetch; 0: no limit."""
    per: Literal["client", "connection", "topic", "group", "rule"] = "client"
    """For whom: client ids, connections, each topic or group that a request names, or all together."""
    buckets: dict[Hashable, Bucket] = field(default_factory=dict, init=False, compare=False, repr=False)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        said: list[Order] = []
        wait = self._wait(frame, "requests", self.requests, 1)
        if frame.api.name not in FETCHING:
            wait = max(wait, self._wait(frame, "bytes", self.bytes, len(frame.body)))
        elif self.bytes:
            said.append(OnAnswer(lambda answer: self._heard(frame, answer)))
        return said + slowed(frame, wait) if wait else said

    def _heard(self, request: Frame, answer: Frame) -> list[Order]:
        wait = self._wait(request, "bytes", self.bytes, len(answer.body), answer.arrived_ns)
        return throttled(answer, wait) if wait else []

    def _wait(self, frame: Frame, what: str, limit: float, taken: float, now: int | None = None) -> int:
        """How long (ns) whoever asks has to wait; several share what is taken."""
        if not limit:
            return 0
        now = frame.arrived_ns if now is None else now
        if len(self.buckets) > KEPT:
            self.buckets.clear()
        who = self._who(frame)
        share = taken / len(who) if what == "bytes" else taken
        waits = [
            self.buckets.setdefault((what, each), Bucket(limit, now)).wait(share, limit, now) for each in who
        ]
        return max(waits)

    def _who(self, frame: Frame) -> set[Hashable]:
        if self.per == "rule":
            return {None}
        if self.per == "connection":
            return {frame.peer.key}
        if self.per == "client":
            return {frame.client_id}
        named = parts(frame.api.request, frame.version, frame.values, frame.names)
        keys = ("topic", "topic_id") if self.per == "topic" else ("group",)
        found = {_key(part, keys) for part in named if frame.only is None or frame.only(part)}
        return found - {None} or {frame.client_id}


def _key(part: Part, keys: tuple[str, ...]) -> Hashable:
    return next((part[key] for key in keys if part.get(key)), None)
