"""Frames of a part as exchanges, as far as both halves stand in it; the rest frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from klamm.captures.storage.segments import BODIES
from klamm.pipeline.bodies.arrays import Numbers
from klamm.pipeline.reading.frame_rows import MOST_ROWS, Asked, as_one, joined, made, stored
from klamm.pipeline.reading.pairing import NEVER, NONE, pairs_of
from klamm.pipeline.reading.parts import Part


def whole(part: Part, asked: Asked, of_each: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Exchanges that are whole in a part: columns of the request, what is `of_each` half as `request` and
    `response`, and `heard`.
    """
    batches = _batches(part, asked)
    frames = joined(batches, asked) if batches else None
    if frames is None or not frames.num_rows:
        return
    pairs, rows = pairs_of(frames), as_one(list(made(frames, asked, asked.decoding())))
    of_half = [asked.schema.field(name) for name in of_each]
    shared = rows.select([name for name in asked.schema.names if name not in of_each])
    halves = rows.select(list(of_each))
    for first in range(0, len(pairs.requests), MOST_ROWS):
        some = slice(first, first + MOST_ROWS)
        requests, none = pa.array(pairs.requests[some]), pairs.responses[some] == NONE
        responses = pa.array(pairs.responses[some], mask=none)
        columns = {
            **dict(zip(shared.schema.names, shared.take(requests).columns, strict=True)),
            "request": _half(halves.take(requests), of_half, None),
            "response": _half(halves.take(responses), of_half, pa.array(none)),
            "heard": _times(pairs.last_response_ns[pairs.requests[some]]),
        }
        yield pa.RecordBatch.from_pydict(columns)


def left(part: Part, asked: Asked) -> Iterator[pa.RecordBatch]:
    """Frames of exchanges that are not whole in a part, with `heard`. Of the others only headers are looked
    at.
    """
    batches, decoding = _batches(part, asked), asked.decoding()
    if not batches:
        return
    heads = as_one([batch.select([name for name in asked.read if name not in BODIES]) for batch in batches])
    kept = np.arange(len(heads))
    if asked.keeps is not None:
        kept = np.flatnonzero(asked.keeps(heads).to_numpy(zero_copy_only=False))
    if not len(kept):
        return
    pairs = pairs_of(heads.take(pa.array(kept)))
    for first in range(0, len(pairs.left), MOST_ROWS):
        some = np.sort(pairs.left[first : first + MOST_ROWS])
        rows = as_one(list(made(_rows(batches, kept[some]), asked, decoding)))
        yield rows.append_column("heard", _times(pairs.last_response_ns[some]))


def _batches(part: Part, asked: Asked) -> list[pa.RecordBatch]:
    return [one for one in stored(part, asked) if isinstance(one, pa.RecordBatch) and one.num_rows]


def _rows(batches: Sequence[pa.RecordBatch], places: Numbers) -> pa.RecordBatch:
    """The rows at these places of all batches, in ascending order."""
    ends = np.cumsum([len(batch) for batch in batches])
    seams = np.searchsorted(places, ends)
    here = np.split(places, seams[:-1])
    return as_one(
        [
            batch.take(pa.array(some - (end - len(batch))))
            for batch, end, some in zip(batches, ends, here, strict=True)
            if len(some)
        ]
    )


def _half(rows: pa.RecordBatch, fields: list[pa.Field], mask: pa.Array | None) -> pa.Array:
    columns = [rows.column(field.name) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _times(ns: Numbers) -> pa.Array:
    us = pa.array(ns // 1000, mask=ns == NEVER)
    return us.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
