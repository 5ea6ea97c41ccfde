"""Segments that a run gave up because the disk was full: the same run seals them."""

import os
from errno import ENOSPC
from pathlib import Path

import pytest

from klamm.captures.storage.growing import open_new
from klamm.captures.storage.opening import open_segment
from klamm.captures.storage.reading import read
from klamm.captures.storage.scribe import Scribe
from klamm.captures.storage.writing import Writer
from klamm.captures.streams.blanking import Keeping
from tests.captures.storage.test_keeper import FIRST, ORIGIN, heartbeat
from tests.captures.stored_rows import START_NS


class Full:
    """A segment's file on a disk that takes this many bytes in all."""

    def __init__(self, path: Path, room: list[int]) -> None:
        self._file, self._room = open_new(path), room
        self.fileno, self.close = self._file.fileno, self._file.close

    def write(self, data: memoryview) -> int:
        if not self._room[0]:
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        written = self._file.write(data[: self._room[0]])
        assert written is not None
        self._room[0] -= written
        return written


@pytest.mark.parametrize("freed", ["while it runs", "before its end"])
def test_a_segment_that_was_given_up_on_a_full_disk_is_sealed_by_its_own_run_which_tells_the_gap(
    tmp_path: Path, freed: str
) -> None:
    now_s, room = [100.0], [30_000]
    writer = Writer(tmp_path, ORIGIN, open_file=lambda path: Full(path, room), clock=lambda: now_s[0])
    scribe = Scribe(writer, Keeping(), lambda kind, message: None, clock=lambda: now_s[0])
    scribe.take([("opened", 1, "request", START_NS, FIRST)])
    for number in range(200):
        scribe.take([("chunk", 1, "request", START_NS + number, heartbeat(number))])
        now_s[0] += 0.6
        scribe.tick()
    assert scribe.counters.failing
    assert [path for path in tmp_path.iterdir() if path.stat().st_size]
    room[0] = 10**9
    if freed == "while it runs":
        now_s[0] += 2
        scribe.tick()
    scribe.end()
    rows = list(read(tmp_path))
    lost = [row for row in rows if row.kind == "lost"]
    assert {row.text for row in lost} == {"not written: No space left on device"}
    kept = sum(row.kind == "frame" for row in rows)
    assert kept + sum(row.lost for row in lost) == 200
    assert kept > 2
    assert all(path.suffix == ".arrow" for path in tmp_path.iterdir())
    statistics = [open_segment(path).statistics for path in tmp_path.iterdir()]
    assert not any(each is None or each.cut for each in statistics)
    assert scribe.counters.segments == len(statistics) > 1
