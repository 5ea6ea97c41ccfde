"""Batches of a segment as rows of the table `frames`, in Arrow: whole columns where headers are enough, and
frame by frame only where bodies are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from klamm.captures.storage.decoding import column_values
from klamm.captures.storage.opening import Opened
from klamm.captures.storage.segments import COLUMNS, Damaged
from klamm.decoders import API
from klamm.pipeline.bodies import NAMED, STORED, Bodies, Stored, as_text
from klamm.pipeline.parts import Part, opening

SIZE = 4  # bytes of the size field, which captures do not count
MOST_BYTES = 16 << 20  # of frames at a time, and of rows
MOST_ROWS = 10_000
DECODED = frozenset({"body", *NAMED})
# What a column of `frames` is made of, where it has another name.
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
    what is damaged; `api_keys`: batches without these need not be read.
    """

    def __init__(
        self,
        schema: pa.Schema,
        keeps: Mask | None = None,
        also: Collection[str] = (),
        typed: bool = False,
        faults: bool = True,
        api_keys: Collection[int] | None = None,
    ) -> None:
        self.schema, self.keeps, self.typed, self.faults = schema, keeps, typed, faults
        self.api_keys = api_keys
        self.decoded = DECODED.intersection(schema.names)
        self.content = typed and "body" in schema.names and _has_content(schema.field("body").type)
        needed = {"time_ns", *also, *(source for name in schema.names for source in FROM.get(name, (name,)))}
        needed.update((*STORED, "size") if self.decoded else ())
        self.read = tuple(name for name in COLUMNS if name in needed)


def read(part: Part, asked: Asked) -> Iterator[pa.RecordBatch]:
    """What a part has of what is asked for. What is damaged in it is a row of kind `lost`."""
    bodies = Bodies(asked.decoded, asked.typed, asked.content)
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for found in stored(part, asked):
        if isinstance(found, pa.RecordBatch):
            waiting.append(found)
            rows, size = rows + len(found), size + found.nbytes
        elif asked.faults:
            yield _fault(asked.schema, *found)
        if rows >= MOST_ROWS or size >= MOST_BYTES:
            yield from made(joined(waiting, asked), asked, bodies)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from made(joined(waiting, asked), asked, bodies)


def stored(part: Part, asked: Asked) -> Iterator[pa.RecordBatch | tuple[str, int]]:
    """Batches of a segment, with the columns that are needed; or what is wrong, and how many rows are lost by
    it.
    """
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
    """The rows of them that are asked for, as one: much is done for each batch that is no more for a large
    one.
    """
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    batch = pa.RecordBatch.from_arrays([column.chunk(0) for column in table.columns], schema=table.schema)
    return batch if asked.keeps is None else batch.filter(asked.keeps(batch))


def made(batch: pa.RecordBatch, asked: Asked, bodies: Bodies) -> Iterator[pa.RecordBatch]:
    """Its rows as they are asked for, so that what is decoded at a time is not much."""
    for piece in _pieces(batch) if asked.decoded else [batch]:
        if piece.num_rows:
            decoded = bodies.columns(_bodies(piece)) if asked.decoded else {}
            arrays = [_column(piece, field, decoded) for field in asked.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=asked.schema)


def _bodies(batch: pa.RecordBatch) -> Iterator[Stored]:
    return zip(*(column_values(batch.column(name)) for name in STORED), strict=True)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """So that the bodies of what is decoded at a time are not many."""
    first = total = 0
    for place, size in enumerate(batch.column("size").to_pylist()):
        total += size
        if total > MOST_BYTES:
            yield batch.slice(first, place + 1 - first)
            first, total = place + 1, 0
    yield batch.slice(first)


def _column(batch: pa.RecordBatch, field: pa.Field, decoded: dict[str, list[Any]]) -> pa.Array:
    name, kind = field.name, field.type
    if name in decoded:
        return _array(decoded[name], kind)
    made = MADE.get(name)
    column = made(batch) if made else batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column if column.type == kind else column.cast(kind)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array(as_text(values), kind)


def _time(batch: pa.RecordBatch) -> pa.Array:
    us = pc.divide(batch.column("time_ns"), 1000)
    return us.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))


def _bytes(batch: pa.RecordBatch) -> pa.Array:
    """With the size field, which frames and tokens have."""
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
    said = {"kind": "lost", "text": text, "lost": lost, "bytes": 0, "awaits": False, "fate": "passed"}
    arrays = [pa.array([said.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _rows(opened: Opened, place: int) -> int:
    return opened.spans[place].rows if place < len(opened.spans) else 0


def _has_content(of: pa.DataType) -> bool:
    """Does a body's type ask for what only the records themselves tell?"""
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return _has_content(of.value_type)
    if not pa.types.is_struct(of):
        return False
    names = [of.field(index).name for index in range(of.num_fields)]
    wanted = {"keys", "top_key_records", "uncompressed_bytes"}
    return bool(wanted.intersection(names)) or any(
        _has_content(of.field(index).type) for index in range(of.num_fields)
    )
