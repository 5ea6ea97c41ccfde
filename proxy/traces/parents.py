"""The traces that records go with: their headers `traceparent` and `tracestate` (W3C Trace Context)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from klamm.decoders import API, DecodeError, UnknownApi
from klamm.decoders.records import Batch, MissingCodec, RecordsError, batches, records
from klamm.decoders.schema import RECORDS, Api, Side, marked
from klamm.rules.frame import Frame
from klamm.rules.subjects import at

Carrier = dict[str, str]
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
MOST = 33  # different ones of an exchange: a parent, and links
MOST_RECORDS = 10_000  # of an exchange that are looked at
MOST_BYTES = 4 << 20  # of a batch when decompressed; larger ones are not read
MOST_HEADERS = 100  # of a record


class Carried(NamedTuple):
    """The number of records of an exchange, and the different traces in the headers of the first ones."""

    records: int
    carriers: list[Carrier]


def carried(*frames: Frame | None) -> Carried:
    """Reads the records of these frames. Batches that cannot be read are left out."""
    found = [batch for frame in frames if frame is not None for batch in _batches(frame)]
    different: dict[str, Carrier] = {}
    for carrier in islice(_carriers(found), MOST_RECORDS):
        if carrier is not None:
            different.setdefault(carrier[TRACEPARENT], carrier)
            if len(different) == MOST:
                break
    return Carried(sum(max(0, batch.record_count) for batch in found), list(different.values()))


def with_records() -> list[str]:
    """The APIs whose requests or responses have records."""
    sides: tuple[Side, ...] = ("request", "response")
    return [api.name for api in API if any(_paths(api, side, max(api.versions)) for side in sides)]


@cache
def _paths(api: Api, side: Side, version: int) -> list[tuple[str, ...]]:
    return marked(api.fields(side), version, frozenset({RECORDS}))


def _batches(frame: Frame) -> Iterator[Batch]:
    for path in _paths(frame.api, frame.side, frame.version):
        try:
            for data in at(frame.values, path):
                yield from (batch for batch in batches(data) if not batch.is_control)
        except (DecodeError, UnknownApi, RecordsError):
            continue


def _carriers(found: list[Batch]) -> Iterator[Carrier | None]:
    """The trace headers of each record; None for a record without."""
    for batch in found:
        try:
            for record in records(batch, MOST_BYTES, MOST_HEADERS):
                told = {
                    name: value.decode("ascii", "replace")
                    for name, value in record.headers
                    if name in (TRACEPARENT, TRACESTATE) and value is not None
                }
                yield told if TRACEPARENT in told else None
        except (RecordsError, MissingCodec):
            continue
