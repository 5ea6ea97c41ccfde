"""Batches of a segment, as pyarrow reads them: are they what was written, and as rows of a capture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise, repeat
from typing import Any

from klamm.captures.captured import Blanks, Captured, Connection
from klamm.captures.storage.checksums import CHECKS_COLUMNS
from klamm.captures.storage.encoding import CONNECTION, LETTERS, NOBODY, checksum
from klamm.captures.storage.segments import BODIES, COLUMNS, Damaged, Summary


def check(batch: Any, summary: Summary) -> None:
    """Raises Damaged where columns are not what was written, or, if nothing can tell, make no sense."""
    names = list(COLUMNS)
    try:
        batch.validate(full=not CHECKS_COLUMNS)
    except ValueError as wrong:
        raise Damaged(str(wrong)) from None
    if batch.num_rows != summary.span.rows:
        raise Damaged("a batch has not its rows")
    for column, name in zip(batch.columns, batch.schema.names, strict=True):
        at = names.index(name)
        texts = summary.texts[at] if COLUMNS[name] == "codes" else None
        if CHECKS_COLUMNS and _checksum(column, texts) != summary.checksums[at]:
            raise Damaged(f"the column {name} is not what was written")


def _checksum(column: Any, texts: int | None) -> int:
    """As `Encoding.batch` makes it. `texts`: how many of its dictionary were known by then."""
    so_far = 0
    if texts is not None:
        _, ends, data = column.dictionary.buffers()
        ends = memoryview(ends)[: 4 * texts + 4] if texts else bytes(4)
        size = int.from_bytes(ends[-4:], "little")
        so_far = checksum([ends, memoryview(data)[:size] if size else b""])
    buffers = column.buffers()[0 if column.null_count else 1 :]
    return checksum([buffer for buffer in buffers if buffer is not None], so_far)


def rows(batch: Any) -> list[Captured]:
    """Of a batch that is checked, and has all columns but, at most, the bodies. Frames stay cut."""
    columns = {
        name: column_values(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    count = batch.num_rows
    connections = zip(*(columns[name] for name in CONNECTION), strict=True)
    known: dict[tuple[Any, ...], Connection | None] = {NOBODY: None}
    of: list[Connection | None] = []
    for fields in connections:
        if fields not in known:
            known[fields] = Connection._make(fields)
        of.append(known[fields])
    columns["connection"] = of
    for name in BODIES.difference(columns):
        columns[name] = repeat(None if name in ("frame", "forwarded") else (), count)
    return list(map(Captured._make, zip(*(columns[name] for name in Captured._fields), strict=True)))


def column_values(column: Any) -> Iterable[Any]:
    """Of a column of a checked batch, in Python's values."""
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
