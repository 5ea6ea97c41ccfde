"""Frames of a part as exchanges, as far as both halves stand in it; the rest frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from klamm.pipeline.bodies import Bodies
from klamm.pipeline.frame_rows import MOST_BYTES, MOST_ROWS, Asked, joined, made, stored
from klamm.pipeline.pairing import KEYS, NEVER, NONE, Numbers, Pairs, pairs_of
from klamm.pipeline.parts import Part

NEEDED = (*KEYS, "size")  # columns of segments


def whole(part: Part, asked: Asked, of_each: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Exchanges that are whole in a part: columns of the request, what is `of_each` half as `request` and
    `response`, and `heard`.
    """
    frames, bodies = _frames(part, asked), Bodies(asked.decoded, asked.typed, asked.content)
    if frames is None:
        return
    pairs = pairs_of(frames)
    of_half = [asked.schema.field(name) for name in of_each]
    shared = [name for name in asked.schema.names if name not in of_each]
    for some in _pieces(frames, pairs):
        requests, responses = pairs.requests[some], pairs.responses[some]
        has_two = responses != NONE
        rows = _made(frames, np.concatenate([requests, responses[has_two]]), asked, bodies)
        first = rows.slice(0, len(requests))
        second = rows.take(pa.array(len(requests) + np.cumsum(has_two) - 1, mask=~has_two))
        columns = {
            **{name: first.column(name) for name in shared},
            "request": _half(first, of_half, None),
            "response": _half(second, of_half, pa.array(~has_two)),
            "heard": _times(pairs.heard_ns[requests]),
        }
        yield pa.RecordBatch.from_pydict(columns)


def left(part: Part, asked: Asked) -> Iterator[pa.RecordBatch]:
    """Frames of exchanges that are not whole in a part, with `heard`."""
    frames, bodies = _frames(part, asked), Bodies(asked.decoded, asked.typed, asked.content)
    if frames is None:
        return
    pairs = pairs_of(frames)
    for first in range(0, len(pairs.left), MOST_ROWS):
        some = pairs.left[first : first + MOST_ROWS]
        rows = _made(frames, some, asked, bodies)
        yield rows.append_column("heard", _times(pairs.heard_ns[some]))


def _frames(part: Part, asked: Asked) -> pa.RecordBatch | None:
    """Those of a part, as segments have them; None: there are none."""
    batches = [batch for batch in stored(part, asked) if isinstance(batch, pa.RecordBatch)]
    found = joined(batches, asked) if batches else None
    return found if found is not None and found.num_rows else None


def _made(frames: pa.RecordBatch, rows: Numbers, asked: Asked, bodies: Bodies) -> pa.RecordBatch:
    """Some of them, as they are asked for."""
    pieces = list(made(frames.take(pa.array(rows)), asked, bodies))
    return pa.Table.from_batches(pieces, asked.schema).combine_chunks().to_batches()[0]


def _pieces(frames: pa.RecordBatch, pairs: Pairs) -> Iterator[slice]:
    """So that what is decoded at a time is not much."""
    sizes = frames.column("size").to_numpy()
    sizes = sizes[pairs.requests] + np.where(pairs.responses == NONE, 0, sizes[pairs.responses])
    piece = np.maximum(np.cumsum(sizes) // MOST_BYTES, np.arange(len(sizes)) // MOST_ROWS)
    ends = [*np.flatnonzero(np.diff(piece)) + 1, len(sizes)]
    for first, end in zip([0, *ends], ends, strict=False):
        if end > first:
            yield slice(first, end)


def _half(rows: pa.RecordBatch, fields: list[pa.Field], mask: pa.Array | None) -> pa.Array:
    columns = [rows.column(field.name) for field in fields]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _times(ns: Numbers) -> pa.Array:
    us = pa.array(ns // 1000, mask=ns == NEVER)
    return us.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
