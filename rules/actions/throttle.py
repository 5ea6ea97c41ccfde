"""throttle and rate: clients are told to wait, as a broker's quotas do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from klamm.decoders.schema import version_range
from klamm.rules.frame import Frame
from klamm.rules.quantities import Duration
from klamm.rules.rule import Draw
from klamm.rules.verdict import Delay, Edit, OnAnswer, Order

MS, S = 1_000_000, 1_000_000_000
FIELD = "throttle_time_ms"

# From these versions on clients wait by themselves (KIP-219); below, only a late answer slows them. APIs that
# are not here do so in all versions that have the field.
HEEDED = {
    "Produce": "6+", "Fetch": "8+", "ListOffsets": "3+", "Metadata": "6+", "OffsetCommit": "4+",
    "OffsetFetch": "4+", "FindCoordinator": "2+", "JoinGroup": "3+", "Heartbeat": "2+", "LeaveGroup": "2+",
    "SyncGroup": "2+", "DescribeGroups": "2+", "ListGroups": "2+", "ApiVersions": "2+",
    "CreateTopics": "3+", "DeleteTopics": "2+", "DeleteRecords": "1+", "InitProducerId": "1+",
    "AddPartitionsToTxn": "1+", "AddOffsetsToTxn": "1+", "EndTxn": "1+", "TxnOffsetCommit": "1+",
    "DescribeAcls": "1+", "CreateAcls": "1+", "DeleteAcls": "1+", "DescribeConfigs": "2+",
    "AlterConfigs": "1+", "AlterReplicaLogDirs": "1+", "DescribeLogDirs": "1+", "CreatePartitions": "1+",
    "CreateDelegationToken": "1+", "RenewDelegationToken": "1+", "ExpireDelegationToken": "1+",
    "DescribeDelegationToken": "1+", "DeleteGroups": "1+",
}  # fmt: skip


def throttled(answer: Frame, ns: int) -> list[Order]:
    """The answer with this throttle time, at once where clients heed it, else late."""
    said: list[Order] = []
    if FIELD in answer.values:
        said.append(Edit({**answer.values, FIELD: max(answer.values[FIELD], -(-ns // MS))}))
    if not said or answer.version not in version_range(HEEDED.get(answer.api.name, "0+")):
        said.append(Delay(ns))
    return said


@dataclass(frozen=True, slots=True)
class Throttle:
    """Tell the client to wait. Versions below KIP-219 do not listen: for them the answer is late instead."""

    name: ClassVar[str] = "throttle"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    time: Duration
    """How long: throttle_time_ms."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        if frame.side == "response":
            return throttled(frame, self.time)
        return [OnAnswer(lambda answer: throttled(answer, self.time))]


@dataclass(slots=True)
class Bucket:
    """What may pass now; it fills with time, up to a second's worth."""

    left: float
    at: int


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit in requests or bytes a second. Who goes beyond it is throttled, as by a broker's quota."""

    name: ClassVar[str] = "rate"
    sides: ClassVar[Sequence[str]] = ("request",)

    limit: float
    """A second."""
    of: Literal["requests", "bytes"] = "requests"
    """What is counted."""
    per: Literal["client", "connection", "rule"] = "client"
    """For whom."""
    buckets: dict[Hashable, Bucket] = field(default_factory=dict, init=False, compare=False, repr=False)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        now = frame.arrived_ns
        key = {"client": frame.client_id, "connection": frame.peer.key, "rule": None}[self.per]
        bucket = self.buckets.setdefault(key, Bucket(self.limit, now))
        bucket.left = min(self.limit, bucket.left + (now - bucket.at) / S * self.limit)
        bucket.at = now
        bucket.left -= 1 if self.of == "requests" else len(frame.body)
        if bucket.left >= 0:
            return []
        wait = round(-bucket.left / self.limit * S)
        return [OnAnswer(lambda answer: throttled(answer, wait))]
