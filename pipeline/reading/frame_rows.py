"""Batches of a segment as rows of the table `frames`, in Arrow: whole columns where headers are enough, and
frame by frame only where bodies are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from klamm.captures.storage.opening import Opened
from klamm.captures.storage.segments import COLUMNS, Damaged
from klamm.decoders import API
from klamm.pipeline.bodies.decoding import Decoding, array
from klamm.pipeline.bodies.one_by_one import NAMED, SENT, STORED
from klamm.pipeline.reading.parts import Part, opening
from klamm.pipeline.schemas import BODY, UNDECODABLE, VARIANT

SIZE = 4  # bytes of the size field, which captures do not count
MOST_BYTES = 16 << 20  # of frames at a time, and of rows
MOST_ROWS = 10_000  # for Spark, in a batch
MOST_DECODED = 20_000  # frames at a time
DECODED = frozenset({BODY, VARIANT, UNDECODABLE, *NAMED})
# The fields of a row from which a column of `frames` is made, if their names differ.
FROM = {
    "time": ("time_ns",),
    "api": ("api_key",),
    "version": ("api_version", "api_key"),
    "bytes": ("size", "kind"),
    "api_key": ("api_key",),
}
Mask = Callable[[pa.RecordBatch], Any]


class Asked:
    """`schema`: the columns that are wanted, as Arrow has them; `keeps`: which rows, by their headers, and
    `also`: the columns of segments that it looks at; `typed`: bodies are structs; `faults`: rows that say
    what is damaged; `api_keys`: batches without these need not be read; `topic_names`: by id,
    with which `topics` are those of `topic_ids` as well; an id that is not among them stays.
    """

    def __init__(
        self,
        schema: pa.Schema,
        keeps: Mask | None = None,
        also: Collection[str] = (),
        typed: bool = False,
        faults: bool = True,
        api_keys: Collection[int] | None = None,
        topic_names: Mapping[str, str] | None = None,
    ) -> None:
        self.schema, self.keeps, self.faults, self.api_keys = schema, keeps, faults, api_keys
        self.decoded = DECODED.intersection(schema.names)
        self._typed, self._topic_names = typed, topic_names
        self._content = typed and BODY in schema.names and _has_content(schema.field(BODY).type)
        needed = {"time_ns", *also, *(source for name in schema.names for source in FROM.get(name, (name,)))}
        needed.update(STORED if self.decoded else ())
        needed.update(SENT.values() if "errors" in self.decoded else ())
        self.read = tuple(name for name in COLUMNS if name in needed)

    def decoding(self) -> Decoding:
        """A decoder for each part: it caches the layouts that it has read."""
        return Decoding(self.decoded, self._typed, self._content, self._topic_names)


def read(part: Part, asked: Asked) -> Iterator[pa.RecordBatch]:
    """The wanted rows of a part. Damage in it becomes rows of kind `lost`."""
    decoding = asked.decoding()
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for found in stored(part, asked):
        if isinstance(found, pa.RecordBatch):
            waiting.append(found)
            rows, size = rows + len(found), size + found.nbytes
        elif asked.faults:
            yield _fault(asked.schema, *found)
        if rows >= MOST_ROWS or size >= MOST_BYTES:
            yield from made(joined(waiting, asked), asked, decoding)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from made(joined(waiting, asked), asked, decoding)


def stored(part: Part, asked: Asked) -> Iterator[pa.RecordBatch | tuple[str, int]]:
    """Batches of a segment, with the needed columns; or a problem, and the number of rows that it costs."""
    if part.fault:
        yield f"{part.path}: {part.fault}".removeprefix(": "), 0
    if part.stop == part.first:
        return
    opened, fault = opening(Path(part.path), asked.read)
    if opened is None:
        yield f"{part.path}: {fault}", 0
        return
    for place in range(part.first, part.stop):
        try:
            batch = opened.batch(place, asked.api_keys)
        except Damaged as wrong:
            yield f"{part.path}: batch {place + 1} is damaged: {wrong}", _rows(opened, place)
            continue
        if batch is not None:
            yield batch


def joined(batches: Sequence[pa.RecordBatch], asked: Asked) -> pa.RecordBatch:
    """The rows of them that are asked for."""
    return as_one([_kept(batch, asked.keeps) for batch in batches])


def _kept(batch: pa.RecordBatch, keeps: Mask | None) -> pa.RecordBatch:
    kept = None if keeps is None else keeps(batch)
    return batch if kept is None or kept.true_count == len(kept) else batch.filter(kept)


def as_one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Much is done for each batch that is no more for a large one."""
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return pa.RecordBatch.from_arrays([column.chunk(0) for column in table.columns], schema=table.schema)


def made(batch: pa.RecordBatch, asked: Asked, decoding: Decoding) -> Iterator[pa.RecordBatch]:
    """The wanted rows of a batch, in pieces, so that little is decoded at a time."""
    for piece in _pieces(batch) if asked.decoded else [batch]:
        if piece.num_rows:
            decoded = decoding.columns(piece)
            arrays = [_column(piece, field, decoded) for field in asked.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=asked.schema)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Splits a batch, so that little is decoded at a time."""
    ends = np.cumsum(pc.binary_length(batch.column("frame")).fill_null(0).to_numpy(), dtype=np.int64)
    piece = np.maximum(ends // MOST_BYTES, np.arange(len(ends)) // MOST_DECODED)
    seams = np.flatnonzero(np.diff(piece)) + 1
    for first, end in pairwise([0, *seams.tolist(), len(ends)]):
        yield batch.slice(first, end - first)


def _column(batch: pa.RecordBatch, field: pa.Field, decoded: dict[str, Any]) -> pa.Array:
    name, kind = field.name, field.type
    column = decoded.get(name)
    if isinstance(column, list):
        return array(column, kind)
    if column is None:
        made = MADE.get(name)
        column = made(batch) if made else batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def _time(batch: pa.RecordBatch) -> pa.Array:
    us = pc.divide(batch.column("time_ns"), 1000)
    return us.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))


def _bytes(batch: pa.RecordBatch) -> pa.Array:
    """The sizes with the size field, which frames and tokens have."""
    on_wire = pc.is_in(batch.column("kind").dictionary_decode(), pa.array(["frame", "token"]))
    return pc.add(batch.column("size"), pc.if_else(on_wire, SIZE, 0))


def _known(name: str) -> Callable[[pa.RecordBatch], pa.Array]:
    """Numbers, null where they are -1."""

    def column(batch: pa.RecordBatch) -> pa.Array:
        values = batch.column(name)
        return pc.if_else(pc.less(values, 0), pa.scalar(None, values.type), values)

    return column


def _api(batch: pa.RecordBatch) -> pa.Array:
    keys, names = _api_names()
    return names.take(pc.index_in(batch.column("api_key"), keys))


@cache
def _api_names() -> tuple[pa.Array, pa.Array]:
    return pa.array([api.key for api in API], pa.int16()), pa.array([api.name for api in API])


MADE: dict[str, Callable[[pa.RecordBatch], pa.Array]] = {
    "time": _time,
    "bytes": _bytes,
    "api": _api,
    "api_key": _known("api_key"),
    "version": _known("api_version"),
    "exchange": _known("exchange"),
}


def _fault(schema: pa.Schema, text: str, lost: int) -> pa.RecordBatch:
    """The row that says so."""
    values = {"kind": "lost", "text": text, "lost": lost, "bytes": 0, "awaits": False, "fate": "passed"}
    arrays = [pa.array([values.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows(opened: Opened, place: int) -> int:
    return opened.spans[place].rows if place < len(opened.spans) else 0


def _has_content(of: pa.DataType) -> bool:
    """Whether a body's type has fields that only the records themselves have."""
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return _has_content(of.value_type)
    if not pa.types.is_struct(of):
        return False
    names = [of.field(index).name for index in range(of.num_fields)]
    wanted = {"keys", "top_key_records", "uncompressed_bytes"}
    return bool(wanted.intersection(names)) or any(
        _has_content(of.field(index).type) for index in range(of.num_fields)
    )
