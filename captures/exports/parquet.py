"""The table `exchanges` as a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

import pyarrow as pa
from pyarrow import parquet

from klamm.captures.exports.exchange_rows import row
from klamm.captures.exports.exchange_schema import COLUMNS, schema
from klamm.captures.frames import Framed

GROUP_ROWS = 32 * 1024
GROUP_BYTES = 16 * 1024 * 1024  # of bodies in memory before they are written
BODIES = [index for index, column in enumerate(COLUMNS) if column.name.endswith("_body")]


def write(exchanges: Iterable[Framed], file: IO[bytes], bodies: bool = True) -> int:
    """Returns the number of rows. Raises OSError."""
    of, count = schema(), 0
    with parquet.ParquetWriter(file, of, compression="zstd") as writer:
        rows: list[tuple[Any, ...]] = []
        size = 0
        for one in exchanges:
            made = row(one, bodies)
            rows.append(made)
            size += sum(len(made[index] or "") for index in BODIES)
            if len(rows) == GROUP_ROWS or size > GROUP_BYTES:
                writer.write_batch(batch(rows, of))
                count += len(rows)
                rows, size = [], 0
        if rows:
            writer.write_batch(batch(rows, of))
    return count + len(rows)


def batch(rows: list[tuple[Any, ...]], of: pa.Schema) -> pa.RecordBatch:
    """Rows as columns."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, of, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=of)
