"""A capture that grows, followed: its rows as they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from klamm.captures.captured import TIME, Captured
from klamm.captures.storage.arrow.decoding import rows
from klamm.captures.storage.opening import Foreign, open_segment
from klamm.captures.storage.segments import Damaged, Newer, sealed_path
from klamm.captures.storage.stored import whole


class Following:
    """Iterated, it gives what there is, then what is added, without end; `wait` is called when there is no
    more, and ends it by returning False. Rows are in the order in which they were written.

    `problems` has a line for what cannot be read.
    """

    def __init__(self, paths: Iterable[str | Path], wait: Callable[[], bool]) -> None:
        self.problems: list[str] = []
        self._paths, self._wait = [Path(path) for path in paths], wait
        self._read: dict[Path, int] = {}  # batches, by the name that a segment has when it is sealed
        self._ended: set[Path] = set()

    def __iter__(self) -> Iterator[Captured]:
        while True:
            for path in self._segments():
                yield from self._new(path)
            if not self._wait():
                return

    def _segments(self) -> list[Path]:
        """The segments that may grow, the oldest first: their names say when they began."""
        found: dict[Path, Path] = {}
        for path in self._paths:
            entries = os.scandir(path) if path.is_dir() else ()  # opening a FIFO would wait for ever
            names = [path / entry.name for entry in entries if entry.is_file()] or [path][: path.is_file()]
            found |= {sealed_path(name): name for name in names if not name.name.startswith(".")}
        return [found[name] for name in sorted(found, key=lambda name: name.name) if name not in self._ended]

    def _new(self, path: Path) -> Iterator[Captured]:
        name = sealed_path(path)
        try:
            opened = open_segment(path)
        except FileNotFoundError:
            return  # it was sealed or removed meanwhile
        except (Foreign, Newer, Damaged, OSError) as wrong:
            self._end(name, str(wrong))
            return
        for place in range(self._read.get(name, 0), len(opened.spans)):
            self._read[name] = place + 1
            try:
                yield from map(whole, sorted(rows(opened.batch(place)), key=TIME))
            except Damaged as wrong:
                self.problems.append(f"{path}: damaged: {wrong}")
        if opened.statistics is not None or opened.fault:
            self._end(name, opened.fault)

    def _end(self, name: Path, fault: str) -> None:
        self._ended.add(name)
        if fault:
            self.problems.append(f"{name}: {fault}")
