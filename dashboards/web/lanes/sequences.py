"""Sequence numbers of idempotent producers: retries, gaps, and those that are out of order (KIP-98)."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from klamm.dashboards.web.lanes.recent import Recent
from klamm.dashboards.web.lanes.words import counted
from klamm.decoders.records import Batch

PARTITIONS = 50_000  # of all producers
REMEMBERED = 5  # batches of a partition, as brokers do
SEQUENCES = 2**31  # after the last comes 0

Place = tuple[int, str, int]  # producer id, topic, partition


class Sent(NamedTuple):
    """A batch: its epoch, its first sequence number, and the one after its last."""

    epoch: int
    first: int
    after: int


class Sequences:
    """The newest batches of each partition."""

    def __init__(self) -> None:
        self.sent: Recent[Place, deque[Sent]] = Recent(PARTITIONS)

    def seen(self, topic: str, partition: int, batch: Batch) -> tuple[str, str]:
        """The kind of mark that a batch is worth, "" for one as expected, and the reason for people."""
        place = batch.producer_id, topic, partition
        after = (batch.base_sequence + batch.last_offset - batch.base_offset + 1) % SEQUENCES
        now = Sent(batch.producer_epoch, batch.base_sequence, after)
        known = self.sent.made(place, lambda: deque(maxlen=REMEMBERED))
        newest = known[-1] if known else None
        if now in known:
            return "retry", f"sequence {now.first} once more"
        known.append(now)
        if newest is None or newest.epoch != now.epoch or newest.after == now.first:
            return "", ""
        missing = (now.first - newest.after) % SEQUENCES
        if missing < SEQUENCES // 2:
            words = counted(missing, "record")
            return "sequence", f"sequence {now.first} where {newest.after} was due: {words} missing"
        return "sequence", f"sequence {now.first} after {newest.after - 1}: out of order"
