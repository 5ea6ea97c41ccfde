"""Captures read again: in order, in part, and with whatever happened to their files."""

import json
import struct
import tracemalloc
from pathlib import Path
from random import Random

import pytest

from klamm.captures.captured import Captured
from klamm.captures.storage.growing import begin
from klamm.captures.storage.opening import KILLED, open_segment
from klamm.captures.storage.reading import read
from klamm.captures.storage.segments import FORMAT, KEY, Damaged, Origin, to_metadata
from klamm.captures.storage.stored import whole
from klamm.captures.storage.writing import Limits, Writer, write_file
from tests.captures.stored_rows import ORIGIN, START_NS, any_rows, frame, frames

MS = 1_000_000


def keep(folder: Path, rows: list[Captured], segment_bytes: int = 1 << 20, origin: Origin = ORIGIN) -> Path:
    """A capture of these rows, in small batches."""
    writer = Writer(folder, origin, Limits(segment_bytes=segment_bytes))
    for start in range(0, len(rows), 100):
        writer.write(rows[start : start + 100])
        writer.flush()
    writer.seal()
    return folder


def test_rows_come_in_the_order_of_time_from_all_segments_of_all_captures(tmp_path: Path) -> None:
    """The rows of one capture are written in another order; the rows of two captures interleave."""
    some = frames(6000)
    one, two = some[0::2], some[1::2]
    shuffled = [one[n + swap] for n in range(0, len(one), 2) for swap in (1, 0)]
    late = [*shuffled[2000:2100], *shuffled[:2000], *shuffled[2100:]]
    keep(tmp_path / "one", late, 100_000)
    keep(tmp_path / "two", two, 150_000, Origin("two"))
    assert len(list((tmp_path / "one").iterdir())) > 3
    reading = read([tmp_path / "one", tmp_path / "two"])
    assert list(reading) == list(map(whole, some))
    assert reading.problems == []


def test_rows_of_one_time_stay_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    some = [frame(n)._replace(time_ns=START_NS) for n in range(1000)]
    assert list(read(keep(tmp_path, some))) == some


def test_blanks_are_zeros_again(tmp_path: Path) -> None:
    row = frame(0, b"headtail", ((4, 3), (8, 2)))._replace(forwarded=b"x", forwarded_blanks=((0, 2),))
    (found,) = read(keep(tmp_path, [row]))
    assert (found.frame, found.forwarded, found.size) == (b"head\0\0\0t\0\0ail", b"\0\0x", 13)


def test_without_bodies_rows_have_all_but_their_bytes(tmp_path: Path) -> None:
    some = any_rows(500, 3)
    bare = [row._replace(frame=None, blanks=(), forwarded=None, forwarded_blanks=()) for row in some]
    assert list(read(keep(tmp_path, some), bodies=False)) == bare


def test_a_time_may_be_asked_for(tmp_path: Path) -> None:
    some = frames(3000)
    keep(tmp_path, some, 50_000)
    since, until = START_NS + 777 * MS, START_NS + 1234 * MS
    reading = read(tmp_path, since_ns=since, until_ns=until)
    assert list(reading) == list(map(whole, some[777:1234]))
    assert len(reading.segments()) < len(list(tmp_path.iterdir()))


def test_columns_may_be_read_without_rows(tmp_path: Path) -> None:
    some = any_rows(1000, 5)
    reading = read(keep(tmp_path, some, 20_000))
    batches = list(reading.batches(["size", "client_id", "api_key"]))
    assert {tuple(batch.schema.names) for batch in batches} == {("api_key", "client_id", "size")}
    assert [size for batch in batches for size in batch.column("size").to_pylist()] == [
        row.size for row in some
    ]
    found = [client for batch in batches for client in batch.column("client_id").to_pylist()]
    assert found == [row.client_id for row in some]


def test_a_growing_segment_is_read_as_far_as_it_is(tmp_path: Path) -> None:
    some = frames(300)
    writer = Writer(tmp_path, ORIGIN)
    writer.write(some[:200])
    reading = read(tmp_path)
    assert list(reading) == []
    writer.flush()
    assert list(reading) == list(map(whole, some[:200]))
    writer.write(some[200:])
    writer.flush()
    assert list(reading) == list(map(whole, some))
    writer.seal()
    assert list(reading) == list(map(whole, some))
    assert reading.problems == []


def test_a_capture_is_read_in_little_memory(tmp_path: Path) -> None:
    keep(tmp_path, frames(1000, 60_000), 1 << 21)
    tracemalloc.start()
    try:
        assert sum(1 for _ in read(tmp_path)) == 1000
        assert tracemalloc.get_traced_memory()[1] < 25 << 20
    finally:
        tracemalloc.stop()


def test_what_is_no_capture_is_said_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = keep(tmp_path / "capture", [frame(0)])
    (folder / "notes.txt").write_text("see the ticket")
    (tmp_path / "empty").mkdir()
    (tmp_path / "none.arrow").touch()
    import pyarrow as pa

    with pa.ipc.new_file(str(tmp_path / "other.arrow"), pa.schema([("a", pa.int64())])) as file:
        file.write_batch(pa.record_batch({"a": [1]}))
    paths = [tmp_path / name for name in ("capture", "empty", "none.arrow", "other.arrow", "absent")]
    reading = read(paths)
    assert list(reading) == [frame(0)]
    assert sorted(reading.problems) == [
        f"{tmp_path}/absent: No such file or directory",
        f"{folder}/notes.txt: no segment of a capture",
        f"{tmp_path}/empty: no capture is in this folder",
        f"{tmp_path}/none.arrow: it is empty; 0 rows were read",
        f"{tmp_path}/other.arrow: no segment of a capture",
    ]


def test_a_newer_format_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = Origin("x", klamm="9.1.0", format=FORMAT + 1)
    write_file(tmp_path / "a.arrow", [frame(0)], newer)
    write_file(tmp_path / "b.arrow", [frame(1)], ORIGIN)
    metadata = json.loads(to_metadata(newer)[KEY])
    assert metadata["format"] == FORMAT + 1
    reading = read(tmp_path)
    assert list(reading) == [frame(1)]
    assert reading.problems == [
        f"{tmp_path}/a.arrow: written by klamm 9.1.0, in format {FORMAT + 1}; "
        f"this klamm reads formats up to {FORMAT}: update it"
    ]


def test_a_truncated_segment_is_read_up_to_there(tmp_path: Path) -> None:
    some = frames(300)
    (path,) = keep(tmp_path, some).iterdir()
    content, random = path.read_bytes(), Random(1)
    for _ in range(100):
        path.write_bytes(content[: random.randrange(len(content))])
        reading = read(tmp_path)
        found = list(reading)
        assert found == list(map(whole, some[: len(found)]))
        (problem,) = reading.problems
        assert problem.startswith(f"{path}: ")
        assert "\n" not in problem
        assert f"{len(found)} rows were read" in problem


@pytest.mark.parametrize("growing", [False, True], ids=["sealed", "left over"])
def test_damage_anywhere_is_said_or_does_no_harm(tmp_path: Path, growing: bool) -> None:
    some = any_rows(250, 7)
    (path,) = keep(tmp_path, some).iterdir()
    content, random = bytearray(path.read_bytes()), Random(2)
    if growing:
        path = path.rename(path.with_name(path.name + ".growing"))
    expected = list(map(whole, some))
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(random.choice([1, 1, 1, 10, 1000])):
            damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
        path.write_bytes(damaged)
        reading = read(tmp_path)
        found = list(reading)
        assert all("\n" not in problem for problem in reading.problems)
        if reading.problems:
            left = iter(expected)
            assert all(row in left for row in found)
        else:
            assert found == expected
        for _ in read(tmp_path).batches(["time_ns", "client_id", "side"]):
            pass


@pytest.mark.parametrize("what", ["rows", "statistics"])
def test_texts_that_lead_past_the_end_are_said_before_they_are_read(tmp_path: Path, what: str) -> None:
    """Each text of a dictionary ends at an offset: Arrow reads there, and ends the process if nothing is."""
    some = [frame(0), frame(1)._replace(side="response")]
    (path,) = keep(tmp_path, some).iterdir()
    ends = struct.pack("<3i", 0, len("request"), len("requestresponse"))
    content = path.read_bytes()
    assert ends in content
    path.write_bytes(content.replace(ends, struct.pack("<3i", 0, 1 << 30, 15)))
    if what == "rows":
        reading = read(tmp_path)
        assert list(reading) == []
        (problem,) = reading.problems
        assert f"{path}: damaged: " in problem
    else:
        opened = open_segment(path, ["side"])
        assert opened.fault
        assert opened.has("side", ["nobody"])  # it may: the texts are unknown


def test_a_damaged_batch_costs_its_own_rows_only(tmp_path: Path) -> None:
    some = [frame(n, b"row %06d" % n) for n in range(1000)]
    (path,) = keep(tmp_path, some).iterdir()
    content = path.read_bytes()
    path.write_bytes(content.replace(b"row 000450", b"row 000000"))
    reading = read(tmp_path)
    assert list(reading) == some[:400] + some[500:]
    assert reading.problems == [
        f"{path}: damaged: the column frame is not what was written; 900 of 1000 rows were read"
    ]
    assert len(list(read(tmp_path, bodies=False))) == 1000


def test_a_batch_without_frames_of_the_wanted_apis_is_not_read(tmp_path: Path) -> None:
    rows = [frame(n, b"row %06d" % n)._replace(api_key=n // 100) for n in range(200)]
    (path,) = keep(tmp_path, rows).iterdir()
    path.write_bytes(path.read_bytes().replace(b"row 000050", b"row 000000"))
    opened = open_segment(path)
    assert opened.batch(0, {1, 2}) is None
    assert opened.batch(1, {1, 2}).num_rows == 100
    with pytest.raises(Damaged, match="the column frame is not what was written"):
        opened.batch(0, {0})


def test_a_left_over_segment_is_read_and_said(tmp_path: Path) -> None:
    segment = begin(tmp_path / "20240101T000000Z-pod-00000001-000001.arrow.growing", ORIGIN)
    segment.write([frame(0)])
    segment.abandon()
    reading = read(tmp_path)
    assert list(reading) == [frame(0)]
    assert reading.problems == [f"{segment.path}: {KILLED}; 1 rows were read"]
