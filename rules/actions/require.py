"""require: a policy; requests that do not meet it are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from klamm.decoders import records
from klamm.decoders.records import RecordsError
from klamm.rules.actions.refusals import Refusals
from klamm.rules.actions.refuse import OPEN, POLICY_VIOLATION
from klamm.rules.frame import Frame
from klamm.rules.glob import Glob
from klamm.rules.orders import Log, Order
from klamm.rules.quantities import Bytes, ErrorCode, NamePattern, Number
from klamm.rules.rule import Draw

Acks = Literal["0", "1", "-1", "all"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
PRODUCE = "Produce"
ALL_ACKS = {"all": "-1"}


@dataclass(frozen=True, slots=True)
class Require:
    """Answer requests with an error unless they meet these conditions. Only the given ones are checked; those
    about records only in Produce. Clients that ask again and again are slowed down as by `block`.
    """

    name: ClassVar[str] = "require"
    sides: ClassVar[Sequence[str]] = ("request",)

    client_id: tuple[NamePattern, ...] = ()
    """Patterns that client ids follow."""
    acks: tuple[Acks, ...] = ()
    """The acks that producers may ask for."""
    compression: tuple[Codec, ...] = ()
    """The codecs that batches may have."""
    max_batch: Bytes = Bytes(0)
    """The largest batch."""
    max_request: Bytes = Bytes(0)
    """The largest request."""
    oldest: Number = Number(0)
    """The oldest version of the API."""
    error: ErrorCode = POLICY_VIOLATION
    """The error for all other requests: a name or code of Kafka's."""
    refusals: Refusals = field(default_factory=Refusals, init=False, compare=False, repr=False)

    def act(self, frame: Frame, draw: Draw) -> Iterable[Order]:
        reason = next(self._wrong(frame), None)
        if reason is None or frame.api.name in OPEN:
            return []
        about = {"version": frame.version, "client_id": frame.client_id}
        said = Log(f"refused: {reason}", about, each=False)
        return [said, *self.refusals.refuse(frame, self.error)]

    def _wrong(self, frame: Frame) -> Iterator[str]:
        """The condition that the request does not meet."""
        if self.client_id and not Glob(*self.client_id)(frame.client_id or ""):
            yield f"client id {frame.client_id or ''!r}, the rule requires {_or(self.client_id)}"
        if frame.version < self.oldest:
            yield f"version {frame.version}, the rule requires {self.oldest} or newer"
        if self.max_request and len(frame.body) > self.max_request:
            yield f"a request of {len(frame.body)} bytes, the rule allows {self.max_request}"
        if frame.api.name != PRODUCE or not (self.acks or self.compression or self.max_batch):
            return
        acks = str(frame.values["acks"])
        if self.acks and acks not in {ALL_ACKS.get(each, each) for each in self.acks}:
            yield f"acks={acks}, the rule requires acks={_or(self.acks)}"
        for topic in frame.values["topic_data"]:
            yield from self._wrong_batches(frame, topic)

    def _wrong_batches(self, frame: Frame, topic: dict[str, Any]) -> Iterator[str]:
        named = {
            name: topic[key] for key, name in (("name", "topic"), ("topic_id", "topic_id")) if key in topic
        }
        for row in topic["partition_data"]:
            if frame.only is not None and not frame.only({**named, "partition": row["index"]}):
                continue
            try:
                for batch in records.batches(row["records"] or b""):
                    if self.compression and batch.codec not in self.compression:
                        wanted = _or(self.compression)
                        yield f"compression={batch.codec}, the rule requires compression={wanted}"
                    if self.max_batch and batch.size > self.max_batch:
                        yield f"a batch of {batch.size} bytes, the rule allows {self.max_batch}"
            except RecordsError as wrong:
                yield str(wrong)


def _or(words: Sequence[str]) -> str:
    return " or ".join(words)
