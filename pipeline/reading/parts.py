"""A capture cut into parts that are read by themselves: runs of batches of its segments.

Nothing here needs Spark. What cannot be read is a part of its own, which says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from klamm.captures.storage.opening import Foreign, Opened, open_segment
from klamm.captures.storage.segments import Damaged, Newer, Span, growing_path, sealed_path

PART_BYTES = 16 << 20  # of a segment's file, at least
MOST_PART_BYTES = 64 << 20  # each part costs a task, however small
ENOUGH = 8  # parts of a small capture, for as many cores
ONE = ("time_ns",)  # any column, to read the other properties of a segment


@dataclass(frozen=True, slots=True)
class Part:
    """Batches `first` up to before `stop` of a segment, under the name that it has when it is sealed; and the
    problem of the segment, if this part reports it. `api_keys`: those of its segment; None: any.
    """

    path: str
    first: int = 0
    stop: int = 0
    fault: str = ""
    api_keys: frozenset[int] | None = None


class Wanted(NamedTuple):
    """The wanted rows, as far as segments can be skipped by it. None: all. `texts`: a column of segments, and
    its wanted values.
    """

    since_ns: int | None = None
    before_ns: int | None = None
    api_keys: frozenset[int] | None = None
    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def has(self, span: Span) -> bool:
        after = self.since_ns is None or span.last_ns >= self.since_ns
        return after and (self.before_ns is None or span.first_ns < self.before_ns)


EVERYTHING = Wanted()


def segments(paths: Iterable[str]) -> Iterator[tuple[Path, str]]:
    """Each segment of these files and folders once, under its sealed name, in order of age; with what is
    wrong with a path that has none.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        try:
            names = sorted(entry.name for entry in os.scandir(path) if entry.is_file())
        except NotADirectoryError:
            found[sealed_path(path)] = None
            continue
        except OSError as problem:
            yield path, problem.strerror or str(problem)
            continue
        named = [sealed_path(path / name) for name in names if not name.startswith(".")]
        if not named:
            yield path, "no capture is in this folder"
        found |= dict.fromkeys(named)
    for path in sorted(found, key=lambda path: (path.name, path)):
        yield path, ""


def parts(paths: Iterable[str], wanted: Wanted = EVERYTHING) -> list[Part]:
    """All wanted parts that exist now; at least one, even if only to report that there is nothing."""
    there = list(segments(paths))
    total = sum(_file_bytes(path) for path, _ in there)
    part_bytes = min(max(PART_BYTES, total // ENOUGH), MOST_PART_BYTES)
    found = [part for path, fault in there for part in _parts(path, fault, wanted, part_bytes)]
    return found or [Part("", fault="nothing is there to read")]


def _parts(path: Path, fault: str, wanted: Wanted, part_bytes: int) -> Iterator[Part]:
    columns = (*ONE, *(column for column, _ in wanted.texts))
    opened, reason = (None, fault) if fault else opening(path, columns)
    if opened is None:
        yield Part(str(path), fault=reason)
        return
    if opened.fault:
        yield Part(
            str(path), fault=f"{opened.fault}; {sum(span.rows for span in opened.spans)} rows were read"
        )
    places = [place for place, span in enumerate(opened.spans) if wanted.has(span)]
    keys = None if opened.statistics is None else frozenset(opened.statistics.frames)
    of_apis = keys is None or wanted.api_keys is None or keys & wanted.api_keys
    if places and of_apis and all(opened.has(*one) for one in wanted.texts):
        yield from runs(path, places, _file_bytes(opened.path) // len(opened.spans), keys, part_bytes)


def runs(
    path: Path,
    places: list[int],
    batch_bytes: int,
    api_keys: frozenset[int] | None = None,
    part_bytes: int = PART_BYTES,
) -> Iterator[Part]:
    """Parts of about `part_bytes` with all batches between the first and the last of these places."""
    step = max(1, part_bytes // max(1, batch_bytes))
    for first in range(places[0], places[-1] + 1, step):
        yield Part(str(path), first, min(first + step, places[-1] + 1), api_keys=api_keys)


def opening(path: Path, columns: Iterable[str] = ONE) -> tuple[Opened | None, str]:
    """A segment by its sealed name, growing or not; else why it cannot be read."""
    try:
        return open_by_name(path, columns), ""
    except FileNotFoundError:
        return None, "it is not there"
    except OSError as problem:
        return None, problem.strerror or str(problem)
    except (Foreign, Newer) as wrong:
        return None, str(wrong)
    except Damaged as wrong:
        return None, f"damaged, 0 rows were read: {wrong}"


def open_by_name(path: Path, columns: Iterable[str]) -> Opened:
    """Raises as open_segment does. It may be sealed between two looks at it."""
    for name in (path, growing_path(path)):
        try:
            return open_segment(name, tuple(columns))
        except FileNotFoundError:
            continue
    return open_segment(path, tuple(columns))


def _file_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
