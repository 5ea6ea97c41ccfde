"""Records inside a frame, read for those expressions only that ask about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from klamm.decoders.records import MissingCodec, Record, RecordsError, batches, records
from klamm.decoders.schema import RECORDS
from klamm.rules.expressions import work
from klamm.rules.expressions.body import UNKNOWN, Body, Looking, spread
from klamm.rules.expressions.logic import Get

LARGEST_BATCH = 16 << 20  # bytes, decompressed; a larger one is unknown


class _Needed(Exception):
    """A record is asked about before one was read."""


def of_record(name: str) -> Get:
    def made(looking: Looking) -> Any:
        if looking.record is None:
            raise _Needed
        return getattr(looking.record, name)

    return made


def header(key: str) -> Get:
    """The last of this name, as in Kafka's lastHeader."""
    headers = of_record("headers")

    def made(looking: Looking) -> Any:
        return next((value for name, value in reversed(headers(looking)) if name == key), None)

    return made


def for_any_record(holds: Get, body: Body, steps: int) -> Get:
    """True if it holds for any record; unknown from where on they cannot be read. No record is read, and
    nothing decompressed, where the rest is False already. `steps`: the price of the expression.
    """
    steps += work.RECORD
    fields = [(body.column(mark.path), mark.arrays) for mark in body.marked(RECORDS)]

    def made(looking: Looking) -> bool | None:
        try:
            if holds(looking) is False:
                return False
        except _Needed:
            pass
        found: bool | None = False
        for span in [span for get, arrays in fields for span in looking.listed(spread(get(looking), arrays))]:
            try:
                for record in _records(span, looking):
                    looking.record = record
                    looking.spend(steps + len(record.headers) * work.HEADER)
                    value = holds(looking)
                    if value is True:
                        return True
                    if value is None:
                        found = None
            except (RecordsError, MissingCodec):
                found = None
        return found

    return made


def _records(span: bytes | None, looking: Looking) -> Iterator[Record]:
    """The records of clients, without the markers of transactions."""
    looking.spend(1)
    if span is UNKNOWN or not span:
        return
    for batch in batches(span):
        looking.spend(work.BATCH)
        if not batch.is_control:
            yield from records(batch, LARGEST_BATCH, work.MOST_HEADERS, _paid_by(looking, batch.magic))


def _paid_by(looking: Looking, magic: int) -> Callable[[int], None]:
    """Takes the bytes that a batch yields as work."""
    bytes_for_a_step = work.DECOMPRESSED if magic == 2 else work.DECOMPRESSED_OLD
    return lambda size: looking.spend(size // bytes_for_a_step)
