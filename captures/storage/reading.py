"""A capture read: segments, folders of them, several captures at once, larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from klamm.captures.captured import Captured
from klamm.captures.storage.arrow.decoding import rows
from klamm.captures.storage.merging import END, Found, Later, merged
from klamm.captures.storage.opening import Batch, Foreign, Opened, open_segment
from klamm.captures.storage.segments import (
    BODIES,
    COLUMNS,
    GROWING,
    Damaged,
    Newer,
    Origin,
    Span,
    Statistics,
    schema,
    sealed_path,
)
from klamm.captures.storage.stored import whole

Keep = Callable[[Batch], Batch]
ONE = ("time_ns",)  # Arrow takes none for all
HEADERS = tuple(column for column in COLUMNS if column not in BODIES)


class Segment(NamedTuple):
    """A segment as its own metadata describe it. `statistics` None: it is not sealed."""

    path: Path
    origin: Origin
    statistics: Statistics | None
    first_ns: int
    last_ns: int

    def size_bytes(self) -> int:
        """Of the file as it is now; 0 where it has gone."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def as_it_is(self) -> tuple[str, int, int]:
        """Path, bytes and time of the last change: the same while the file has not changed."""
        try:
            now = self.path.stat()
        except OSError:
            return str(self.path), 0, 0
        return str(self.path), now.st_size, now.st_mtime_ns


class Reading:
    """Rows in the order of time, read as they are wanted; each iteration reads anew, and sees what a growing
    capture has by then.

    `problems` has a line for each thing that could not be read; it is complete when an iteration has ended.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        bodies: bool,
        since_ns: int | None,
        until_ns: int | None,
        keep: Keep | None = None,
    ) -> None:
        self.problems: list[str] = []
        self._paths, self._bodies, self._keep = [Path(path) for path in paths], bodies, keep
        self._since_ns = -END if since_ns is None else since_ns
        self._until_ns = END if until_ns is None else until_ns

    def __iter__(self) -> Iterator[Captured]:
        columns = tuple(COLUMNS) if self._bodies else HEADERS
        found = merged(
            Later(segment.first_ns, (place,), partial(self._later, segment.path, place, columns))
            for place, segment in enumerate(self.segments())
        )
        return map(whole, found) if self._bodies else found

    def batches(self, columns: Collection[str], api_keys: Collection[int] | None = None) -> Iterator[Batch]:
        """pyarrow.RecordBatch of these columns, for what is counted: segment by segment, in each as they were
        written, not in the order of time. Where a time was asked for, those that it has a part of; where APIs
        were, those that have frames of them.
        """
        for segment in self.segments():
            for _, place, pace in self._wanted(segment.path, columns):
                batch = pace.batch(place, api_keys)
                if batch is not None:
                    yield batch

    def segments(self) -> list[Segment]:
        """The segments with rows of the wanted time, the earliest first."""
        self.problems.clear()
        found = []
        for path in dict.fromkeys(path for named in self._paths for path in self._inside(named)):
            opened = self._open(path, ONE)
            if opened is None:
                continue
            if opened.fault and not opened.spans:
                self.problems.append(f"{path}: {opened.fault}; 0 rows were read")
            if opened.origin is not None and any(map(self._is_wanted, opened.spans)):
                first_ns = min(span.first_ns for span in opened.spans)
                last_ns = max(span.last_ns for span in opened.spans)
                found.append(Segment(opened.path, opened.origin, opened.statistics, first_ns, last_ns))
        return sorted(found, key=lambda segment: (segment.first_ns, segment.path.name))

    def _inside(self, path: Path) -> Iterator[Path]:
        """The segments that a path means."""
        try:
            names = sorted(entry.name for entry in os.scandir(path) if entry.is_file())
        except NotADirectoryError:
            yield path
            return
        except OSError as problem:
            self.problems.append(f"{path}: {problem.strerror}")
            return
        names = [name for name in names if not name.startswith(".")]
        if not names:
            self.problems.append(f"{path}: no capture is in this folder")
        for name in names:
            if not name.endswith(GROWING) or sealed_path(path / name).name not in names:
                yield path / name

    def _open(self, path: Path, columns: Collection[str]) -> Opened | None:
        try:
            try:
                return open_segment(path, columns)
            except FileNotFoundError:
                if not path.name.endswith(GROWING):
                    raise
                return open_segment(sealed_path(path), columns)  # it was sealed meanwhile
        except OSError as problem:
            reason = problem.strerror or str(problem)
        except (Foreign, Newer) as wrong:
            reason = str(wrong)
        except Damaged as wrong:
            reason = f"damaged, 0 rows were read: {wrong}"
        self.problems.append(f"{path}: {reason}")
        return None

    def _is_wanted(self, span: Span) -> bool:
        return span.first_ns < self._until_ns and span.last_ns >= self._since_ns

    def _wanted(self, path: Path, columns: Collection[str]) -> list[tuple[Span, int, _Pace]]:
        opened = self._open(path, columns)
        if opened is None:
            return []
        wanted = [(span, place) for place, span in enumerate(opened.spans) if self._is_wanted(span)]
        if opened.fault and not wanted:
            self.problems.append(f"{path}: {opened.fault}; 0 rows were read")
        pace = _Pace(opened, len(wanted), self.problems)
        return [(span, place, pace) for span, place in wanted]

    def _later(self, path: Path, segment: int, columns: Collection[str]) -> Found:
        later = [
            Later(span.first_ns, (segment, place), partial(self._rows, span, place, pace))
            for span, place, pace in self._wanted(path, columns)
        ]
        return later, []

    def _rows(self, span: Span, place: int, pace: _Pace) -> Found:
        batch = pace.batch(place)
        if batch is not None and self._keep is not None:
            batch = self._keep(batch)
        found = rows(batch) if batch is not None and batch.num_rows else []
        if span.first_ns >= self._since_ns and span.last_ns < self._until_ns:
            return [], found
        return [], [row for row in found if self._since_ns <= row.time_ns < self._until_ns]


class _Pace:
    """The batches of one segment as they are read. With the last one it is known how much was damaged."""

    def __init__(self, opened: Opened, wanted: int, problems: list[str]) -> None:
        self._opened, self._left, self._problems = opened, wanted, problems
        self._fault, self._rows = opened.fault, 0

    def batch(self, place: int, api_keys: Collection[int] | None = None) -> Batch | None:
        """None where it is damaged, or has no frame of these APIs."""
        found = None
        try:
            found = self._opened.batch(place, api_keys)
            self._rows += self._opened.spans[place].rows
        except Damaged as wrong:
            self._fault = f"damaged: {wrong}"
        self._left -= 1
        if not self._left and self._fault:
            statistics = self._opened.statistics
            of = f" of {statistics.rows}" if statistics else ""
            self._problems.append(f"{self._opened.path}: {self._fault}; {self._rows}{of} rows were read")
        return found


def read(
    paths: str | Path | Iterable[str | Path],
    *,
    bodies: bool = True,
    since_ns: int | None = None,
    until_ns: int | None = None,
    keep: Keep | None = None,
) -> Reading:
    """Segments, and folders of them, as one capture: rows from `since_ns` up to before `until_ns`. `keep`
    gives the part of a batch of which rows are made; `batches` has all.

    Without `bodies` no byte of a frame is read: `frame` and `forwarded` are None. Raises ModuleNotFoundError
    without pyarrow; what is wrong with paths is among the problems.
    """
    schema()
    named = [paths] if isinstance(paths, str | Path) else paths
    return Reading(named, bodies, since_ns, until_ns, keep)
