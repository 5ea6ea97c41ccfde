"""duplicate: a request twice, or each of its records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from klamm.decoders.records import Batch, Record
from klamm.rules.actions.batches import rewritten, with_records
from klamm.rules.frame import Frame
from klamm.rules.orders import Order, Twice
from klamm.rules.quantities import Share
from klamm.rules.rule import Draw


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The broker gets the request twice, and the client gets the first answer; or records stand twice in
    their batch.
    """

    name: ClassVar[str] = "duplicate"
    sides: ClassVar[Sequence[str]] = ("request", "response")

    records: bool = False
    """Each record twice, in what is produced or fetched. A batch of an idempotent producer is made one of
    any, for its numbers would not fit; one of a transaction is left alone. What is fetched twice has one
    offset: clients that look at offsets (Java's) skip the second."""
    share: Share = Share(1.0)
    """The share of the records that come twice."""

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        if not self.records:
            return [Twice()] if frame.side == "request" else []
        produced = frame.side == "request" and frame.api.name == "Produce"
        return rewritten(frame, lambda batch: self._doubled(batch, draw, produced))

    def _doubled(self, batch: Batch, draw: Draw, produced: bool) -> bytes:
        if produced and batch.is_transactional:
            return batch.data[batch.start : batch.end]
        if produced and batch.producer_id >= 0:
            batch = batch._replace(producer_id=-1, producer_epoch=-1, base_sequence=-1)

        def twice(record: Record) -> list[Record]:
            return [record] * (2 if self.share >= 1 or draw() < self.share else 1)

        return with_records(batch, twice, anew=produced)
