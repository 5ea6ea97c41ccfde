"""Batches of a segment, as pyarrow reads them: are they what was written, and as rows of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, repeat
from typing import Any, get_args

from klamm.captures.captured import Blanks, Captured, CapturedConnection, Fate, Kind
from klamm.captures.storage.arrow.encoding import CONNECTION, LETTERS, NOBODY, checksum
from klamm.captures.storage.checksums import CHECKS_COLUMNS
from klamm.captures.storage.segments import BODIES, COLUMNS, Damaged, Summary
from klamm.decoders.schema import Side

WORDS = {"kind": {*get_args(Kind)}, "side": {*get_args(Side)}, "fate": {*get_args(Fate)}}
LARGEST = 1 << 30  # bytes of a frame, as in limits.frame_bytes
NULLABLE = frozenset({*CONNECTION, "side", "client_id", "frame", "forwarded"})


def check(batch: Any, summary: Summary) -> None:
    """Raises Damaged where columns are not what was written, or, if nothing can tell, make no sense."""
    names = list(COLUMNS)
    try:
        batch.validate(full=True)  # first of all: Arrow reads where an offset leads, past the end too
    except ValueError as wrong:
        raise Damaged(str(wrong)) from None
    if batch.num_rows != summary.span.rows:
        raise Damaged("a batch has not its rows")
    _check_sides(batch)
    _check_blanks(batch, "frame", "blanks")
    _check_blanks(batch, "forwarded", "forwarded_blanks")
    for column, name in zip(batch.columns, batch.schema.names, strict=True):
        at = names.index(name)
        _check_values(column, name)
        texts = summary.texts[at] if COLUMNS[name] == "codes" else None
        if CHECKS_COLUMNS and _checksum(column, texts) != summary.checksums[at]:
            raise Damaged(f"the column {name} is not what was written")


def _check_values(column: Any, name: str) -> None:
    """Raises Damaged for values that no klamm writes: whoever makes a file makes its checksums too."""
    import pyarrow.compute as pc

    if column.null_count and name not in NULLABLE:
        raise Damaged(f"the column {name} lacks values")
    if name in WORDS and not WORDS[name].issuperset(column.dictionary.to_pylist()):
        raise Damaged(f"the column {name} has words of its own")
    if name == "time_ns" and len(column) and pc.min(column).as_py() < 0:
        raise Damaged("it has times before 1970")


def _check_sides(batch: Any) -> None:
    """Raises Damaged for frames of no side."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not {"side", "kind"}.issubset(batch.schema.names):
        return
    sides = batch.column("side")
    if sides.null_count:
        kinds = batch.column("kind").filter(pc.is_null(sides)).dictionary_decode()
        if pc.any(pc.is_in(kinds, value_set=pa.array(["frame", "token"]))).as_py():
            raise Damaged("the column side lacks values")


def _check_blanks(batch: Any, frame: str, blanks: str) -> None:
    """Raises Damaged for blanks that do not fit into their frames, or make them larger than any frame is."""
    import pyarrow.compute as pc

    if not {frame, blanks}.issubset(batch.schema.names) or not len(batch.column(blanks).values):
        return
    sizes = pc.fill_null(pc.binary_length(batch.column(frame)), 0).to_pylist()
    for size, found in zip(sizes, _pairs(batch.column(blanks)), strict=True):
        pos = total = 0  # positions in the cut frame, and in the filled one
        for at, length in found:
            kept = at - total
            pos, total = pos + kept, at + length
            if kept < 0 or length < 0 or pos > size or total > LARGEST:
                raise Damaged(f"its {blanks} do not fit")


def _checksum(column: Any, texts: int | None) -> int:
    """The checksum as `Encoding.batch` makes it. `texts`: how many texts of the dictionary were known by
    then.
    """
    so_far = 0
    if texts is not None:
        _, ends, data = column.dictionary.buffers()
        ends = memoryview(ends)[: 4 * texts + 4] if texts else bytes(4)
        size = int.from_bytes(ends[-4:], "little")
        so_far = checksum([ends, memoryview(data)[:size] if size else b""])
    buffers = column.buffers()[0 if column.null_count else 1 :]
    return checksum([buffer for buffer in buffers if buffer is not None], so_far)


def rows(batch: Any) -> list[Captured]:
    """The rows of a checked batch, which has all columns but, at most, the bodies. Frames stay cut."""
    columns = {
        name: column_values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    count = batch.num_rows
    connections = zip(*(columns[name] for name in CONNECTION), strict=True)
    known: dict[tuple[Any, ...], CapturedConnection | None] = {NOBODY: None}
    of: list[CapturedConnection | None] = []
    for fields in connections:
        if fields not in known:
            known[fields] = CapturedConnection._make(fields)
        of.append(known[fields])
    columns["connection"] = of
    for name in BODIES.difference(columns):
        columns[name] = repeat(None if name in ("frame", "forwarded") else (), count)
    return list(map(Captured._make, zip(*(columns[name] for name in Captured._fields), strict=True)))


def column_values(column: Any) -> Iterable[Any]:
    """The values of a column of a checked batch, as Python's."""
    import pyarrow as pa

    of = column.type
    if pa.types.is_dictionary(of):
        texts = [*column.dictionary.to_pylist(), None]
        if column.null_count:
            column = column.indices.fill_null(len(texts) - 1)
        else:
            column = column.indices
        return map(texts.__getitem__, _numbers(column, "i"))
    if pa.types.is_list(of):
        return _pairs(column)
    letter = LETTERS.get(str(of))
    if letter is None or column.null_count:
        found: list[Any] = column.to_pylist()
        return found
    return _numbers(column, letter)


def _numbers(column: Any, letter: Any) -> list[int]:
    """Faster than Arrow's own way to a list."""
    if not len(column):
        return []
    values = memoryview(column.buffers()[1]).cast("B").cast(letter)
    found: list[int] = values[column.offset : column.offset + len(column)].tolist()
    return found


def _pairs(column: Any) -> Iterator[Blanks]:
    flat = column.values
    pairs = list(zip(_numbers(flat.field(0), "i"), _numbers(flat.field(1), "i"), strict=True))
    ends = _numbers(column.offsets, "i")
    return (tuple(pairs[start:end]) if start != end else () for start, end in pairwise(ends))
