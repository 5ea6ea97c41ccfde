"""Rolling segments: when they end, what they are called, what is deleted, and what a killed run leaves."""

import os
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from klamm.captures.captured import Captured
from klamm.captures.storage.growing import Raw, begin, open_new
from klamm.captures.storage.leftovers import CUT, seal_leftovers
from klamm.captures.storage.opening import open_segment
from klamm.captures.storage.reading import read
from klamm.captures.storage.segments import NAME, Origin, origin
from klamm.captures.storage.stored import whole
from klamm.captures.storage.writing import BATCH_ROWS, Limits, Writer, write_file
from tests.captures.stored_rows import ORIGIN, START_NS, any_rows, frame, frames


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def leave(folder: Path, rows: list[Captured], name: str = "20240101T000000Z-klamm-0-00000001-000001") -> Path:
    """A segment as a killed run leaves it."""
    segment = begin(folder / f"{name}.arrow.growing", ORIGIN)
    for row in rows:
        segment.write([row])
    segment.abandon()
    return segment.path


def test_a_full_segment_is_sealed_and_another_begun(tmp_path: Path) -> None:
    writer = Writer(tmp_path, ORIGIN, Limits(segment_bytes=100_000))
    some = frames(BATCH_ROWS * 3, 100)
    for start in range(0, len(some), 50):
        writer.write(some[start : start + 50])
    writer.seal()
    assert len(names(tmp_path)) == writer.sealed == 3
    assert all(NAME.fullmatch(name) and name.endswith(".arrow") for name in names(tmp_path))
    assert list(read(tmp_path)) == list(map(whole, some))


def test_a_row_waits_half_a_second_at_most_and_a_segment_ends_at_its_age(tmp_path: Path) -> None:
    clock = Clock()
    writer = Writer(tmp_path, ORIGIN, Limits(segment_s=60), clock=clock)
    assert writer.due_s() is None
    writer.write([frame(0)])
    assert writer.due_s() == 1000.5
    clock.now_s = 1000.5
    writer.tick()
    assert [name.endswith(".growing") for name in names(tmp_path)] == [True]
    assert list(read(tmp_path)) == [frame(0)]
    assert writer.due_s() == 1060.5
    clock.now_s = 1060.5
    writer.tick()
    assert [name.endswith(".arrow") for name in names(tmp_path)] == [True]
    assert writer.due_s() is None


def test_the_oldest_segments_are_deleted_where_all_are_too_large_together(tmp_path: Path) -> None:
    size = (
        write_file(tmp_path / "one.arrow", frames(100, 200), ORIGIN)
        and (tmp_path / "one.arrow").stat().st_size
    )
    writer = Writer(tmp_path, ORIGIN, Limits(keep_bytes=size * 7 // 2))
    for n in range(10):
        writer.write(frames(100, 200, first=n * 100))
        writer.seal()
    found = [name.rpartition("-")[2] for name in names(tmp_path)]
    assert found == ["000008.arrow", "000009.arrow", "000010.arrow", "one.arrow"]


def test_segments_are_deleted_at_their_age(tmp_path: Path) -> None:
    writer = Writer(tmp_path, ORIGIN, Limits(keep_s=3600))
    writer.write([frame(0)])
    writer.seal()
    (old,) = tmp_path.iterdir()
    os.utime(old, (0, 0))
    writer.write([frame(1)])
    writer.seal()
    assert list(read(tmp_path)) == [frame(1)]


def test_what_a_killed_run_left_is_sealed_by_the_next(tmp_path: Path) -> None:
    left = leave(tmp_path, [frame(0), frame(1)])
    with left.open("r+b") as file:
        file.truncate(left.stat().st_size - 10)
    writer = Writer(tmp_path, origin())
    writer.write([frame(100)])
    writer.flush()
    reading = read(tmp_path)
    lost_row = Captured(frame(0).time_ns, "lost", text=CUT)
    assert list(reading) == [frame(0), lost_row, frame(100)]
    assert reading.problems == []
    writer.seal()
    assert not left.exists()
    statistics = open_segment(left.with_suffix("")).statistics
    assert statistics is not None
    assert statistics.cut


def test_what_is_sealed_has_nothing_of_the_batch_that_was_cut(tmp_path: Path) -> None:
    left = leave(tmp_path, [frame(0), frame(1, bytes(1 << 20))])
    os.truncate(left, left.stat().st_size - 1000)
    seal_leftovers(tmp_path)
    assert [row.kind for row in read(tmp_path)] == ["frame", "lost"]
    (sealed,) = tmp_path.iterdir()
    assert sealed.stat().st_size < 1 << 16
    pa.ipc.open_file(pa.memory_map(str(sealed))).read_all().validate(full=True)


def test_a_segment_that_another_process_took_for_a_leftover_as_it_began_begins_again(tmp_path: Path) -> None:
    """Between the making of the file and its lock: workers of one klamm share a folder."""
    opened = list[Path]()

    def open_file(path: Path) -> Raw:
        raw = open_new(path)
        opened.append(path)
        if len(opened) == 1:
            seal_leftovers(path.parent)
            assert not path.exists()
        return raw

    writer = Writer(tmp_path, ORIGIN, open_file=open_file)
    writer.write([frame(1)])
    writer.seal()
    assert len(opened) == 2
    assert [row.correlation_id for row in read(tmp_path)] == [1]


def test_a_damaged_leftover_is_sealed_as_far_as_it_makes_sense_or_left(tmp_path: Path) -> None:
    some = any_rows(60, 1)
    left = leave(tmp_path, some)
    content, random = left.read_bytes(), Random(1)
    for _ in range(200):
        damaged = bytearray(content[: random.randrange(len(content))])
        for _ in range(random.choice([0, 1, 1, 100]) if damaged else 0):
            damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        left.write_bytes(damaged)
        seal_leftovers(tmp_path)
        rest = iter([*map(whole, some)])
        assert all(row in rest for row in read(tmp_path) if row.text != CUT)
        for path in tmp_path.iterdir():
            path.unlink()


def test_a_segment_that_its_process_still_writes_is_left_alone(tmp_path: Path) -> None:
    other = Writer(tmp_path, Origin("other", pod="other"))
    other.write([frame(0)])
    other.flush()
    writer = Writer(tmp_path, ORIGIN)
    writer.write([frame(1)])
    writer.seal()
    assert [name.rpartition(".")[2] for name in names(tmp_path)] == ["arrow", "growing"]
    other.write([frame(2)])
    other.seal()
    assert list(read(tmp_path)) == [frame(0), frame(1), frame(2)]


def test_a_leftover_without_a_whole_row_is_removed_and_one_that_is_none_is_not(tmp_path: Path) -> None:
    empty = tmp_path / "20240101T000000Z-klamm-0-00000001-000001.arrow.growing"
    empty.touch()
    strange = tmp_path / "20240101T000000Z-klamm-0-00000001-000002.arrow.growing"
    strange.write_bytes(b"what is this?")
    writer = Writer(tmp_path, ORIGIN)
    writer.write([frame(0)])
    writer.seal()
    assert not empty.exists()
    assert strange.read_bytes() == b"what is this?"


def test_a_run_that_died_after_sealing_a_leftover_leaves_its_rows_once(tmp_path: Path) -> None:
    left = leave(tmp_path, [frame(0)])
    content = left.read_bytes()
    writer = Writer(tmp_path, origin())
    writer.write([frame(1)])
    writer.seal()
    left.write_bytes(content)
    assert [row.kind for row in read(tmp_path)] == ["frame", "lost", "frame"]
    writer.write([frame(2)])
    writer.seal()
    assert not left.exists()
    assert [row.kind for row in read(tmp_path)] == ["frame", "lost", "frame", "frame"]


def test_a_removed_folder_is_noticed_and_what_was_in_it_counted(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    writer = Writer(folder, ORIGIN)
    writer.write(frames(10))
    writer.flush()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    writer.write(frames(5))
    with pytest.raises(FileNotFoundError, match="removed while it grew"):
        writer.flush()
    assert writer.abandon() == (15, 0)
    writer.write([frame(20)])
    writer.seal()
    assert list(read(folder)) == [frame(20)]


def test_one_file_is_there_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "cut.arrow"
    some = list(map(whole, frames(5000)))
    assert write_file(path, some, ORIGIN) == 5000
    assert list(read(path)) == some
    assert names(tmp_path) == ["cut.arrow"]

    def failing():
        yield some[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_file(tmp_path / "other.arrow", failing(), ORIGIN)
    assert names(tmp_path) == ["cut.arrow"]


def test_a_segment_is_named_for_its_time_its_pod_and_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD_NAME", "klamm-7/x")
    of = origin("keep", {"main": None})
    assert (of.pod, of.records, of.clusters) == ("klamm-7/x", "keep", {"main": None})
    writer = Writer(tmp_path, of)
    writer.write([frame(0)])
    of.clusters["main"] = "4L6g3nShT-eMCtK--X86sw"
    writer.seal()
    (name,) = names(tmp_path)
    assert name.endswith(f"Z-klamm-7_x-{of.capture[-8:]}-000001.arrow")
    (segment,) = read(tmp_path).segments()
    assert segment.origin.clusters == {"main": "4L6g3nShT-eMCtK--X86sw"}
    assert segment.first_ns == segment.last_ns == START_NS


def test_a_segment_ends_at_64_mib_or_after_5_minutes_unless_told_otherwise(tmp_path: Path) -> None:
    clock, large = Clock(), frame(0, bytes(1 << 20))
    writer = Writer(tmp_path, ORIGIN, clock=clock)
    for count in range(1, 66):
        writer.write([large])
        assert writer.sealed == (count >= 64), count
    writer.write([large])
    clock.now_s += 299
    writer.tick()
    assert writer.sealed == 1
    clock.now_s += 2
    writer.tick()
    assert writer.sealed == 2
