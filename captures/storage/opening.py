"""Opens one segment for reading: sealed, growing, or left over by a process that was killed."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, BinaryIO

from klamm.captures.storage.arrow.decoding import check
from klamm.captures.storage.segments import (
    COLUMNS,
    GROWING,
    MAGIC,
    STREAM_AT,
    Damaged,
    Newer,
    Origin,
    Span,
    Statistics,
    columns_of_format,
    origin_of,
    schema,
    statistics_of,
    summary_of,
)

Batch = Any  # pyarrow.RecordBatch
StoredBatch = tuple[Batch, Any]  # a batch and its metadata
KILLED = "it was cut short: its klamm was killed, or gave it up when the disk failed"


class Foreign(ValueError):
    """No segment of a capture."""


class Opened:
    """`origin` None: nothing was written yet. `statistics` None: it is not sealed. `fault`: why not all of it
    can be read, if so. The file is mapped, and of it only what is asked for is read.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.fault = path, ""
        self.origin: Origin | None = None
        self.statistics: Statistics | None = None
        self.spans: list[Span] = []
        self._batch_at: Callable[[int], StoredBatch]
        self._last: Batch = None  # of a sealed segment; it has no rows, and the texts of all
        self._later: list[str] = []  # wanted columns that an older format does not have

    def has(self, column: str, texts: Collection[str]) -> bool:
        """May a row have one of these in this column of codes, which was asked for? Only a sealed segment is
        sure that none has.
        """
        if column in self._later:
            return False
        if self._last is None:
            return True
        import pyarrow as pa
        import pyarrow.compute as pc

        known = self._last.column(column).dictionary
        return bool(pc.any(pc.is_in(known, pa.array(texts, known.type))).as_py())

    def batch(self, place: int, api_keys: Collection[int] | None = None) -> Batch:
        """The batch of a span, with the wanted columns; None, unread, if it has no frame of these APIs.
        Raises Damaged.
        """
        try:
            batch, metadata = self._batch_at(place)
            summary = summary_of(metadata)
            if api_keys is not None and not any(key in api_keys for key, _ in summary.frames):
                return None
            check(batch, summary)
            for name in self._later:
                batch = batch.append_column(schema().field(name), _nulls(batch.num_rows))
        except Damaged:
            raise
        except Exception as wrong:  # Arrow has many kinds for bytes that make no sense
            raise Damaged(_line(wrong)) from None
        return batch

    def _from_footer(self, whole: Any, options: Any) -> None:
        import pyarrow as pa

        file = pa.ipc.open_file(whole, options=options)
        origin = _origin(file.schema, options)
        last = file.num_record_batches - 1
        nothing, metadata = file.get_batch_with_custom_metadata(last)
        nothing.validate(full=True)
        statistics = statistics_of(metadata)
        if len(statistics.batches) != last:
            raise Damaged("batches are missing in its footer")
        self._batch_at = file.get_batch_with_custom_metadata
        self.origin, self.statistics, self.spans = origin, statistics, statistics.batches
        self._last = nothing

    def _from_stream(self, whole: Any, options: Any) -> None:
        import pyarrow as pa

        stream = pa.ipc.open_stream(whole.slice(STREAM_AT), options=options)
        self.origin = _origin(stream.schema, options)
        batches: list[StoredBatch] = []
        self._batch_at = batches.__getitem__
        while True:
            try:
                batch, metadata = stream.read_next_batch_with_custom_metadata()
                if batch.num_rows == 0:
                    self.statistics = statistics_of(metadata)
                    break
                self.spans.append(summary_of(metadata).span)
                batches.append((batch, metadata))
            except StopIteration:
                break


def open_segment(path: Path, columns: Collection[str] = tuple(COLUMNS)) -> Opened:
    """Raises Foreign, Newer, Damaged (nothing of it can be read), OSError."""
    import pyarrow as pa

    opened = Opened(path)
    with open(path, "rb") as file:
        lives = path.name.endswith(GROWING) and not _is_free(file)
        start = file.read(STREAM_AT)
    if not MAGIC.startswith(start):
        raise Foreign("no segment of a capture")
    if len(start) < STREAM_AT:
        opened.fault = "" if lives else "it is empty"
        return opened
    whole = pa.memory_map(str(path)).read_buffer()
    there = _columns_there(whole)
    places = [place for place, name in enumerate(there) if name in columns]
    options = pa.ipc.IpcReadOptions(included_fields=places or [0])  # Arrow takes none for all
    opened._later = [name for name in COLUMNS if name in columns and name not in there]
    if not path.name.endswith(GROWING):
        try:
            opened._from_footer(whole, options)
            return opened
        except Newer:
            raise
        except Exception as wrong:
            opened.fault = _line(wrong)
    elif not lives:
        opened.fault = KILLED
    try:
        opened._from_stream(whole, options)
    except (Newer, Foreign):
        raise
    except Exception as wrong:
        if not lives:
            opened.fault = opened.fault or _line(wrong)
        if opened.origin is None and not path.name.endswith(GROWING):
            raise Damaged(opened.fault) from None
    return opened


def _columns_there(whole: Any) -> tuple[str, ...]:
    """The columns of the segment's format; of the newest where its start cannot be read."""
    import pyarrow as pa

    try:
        number = origin_of(pa.ipc.read_schema(whole.slice(STREAM_AT)).metadata).format
    except Exception:  # the caller, which reads it again, says what is wrong
        return tuple(COLUMNS)
    return tuple(columns_of_format(number))


def _nulls(count: int) -> Any:
    """A column of codes without a text."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()), pa.array([], pa.string()))


def _origin(found: Any, options: Any) -> Origin:
    try:
        origin = origin_of(found.metadata)
    except KeyError:
        raise Foreign("no segment of a capture") from None
    wanted = [schema().field(place) for place in options.included_fields]
    if list(found) != wanted:
        raise Damaged("its columns are not those of a capture")
    return origin


def _is_free(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _line(wrong: Exception) -> str:
    return str(wrong).splitlines()[0].rstrip(".") if str(wrong) else type(wrong).__name__
