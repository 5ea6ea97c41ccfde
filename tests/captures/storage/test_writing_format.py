"""Segments as others read them: pyarrow is the judge of what klamm writes without it."""

from pathlib import Path

import pyarrow as pa
import pytest

from klamm.captures.storage.arrow.decoding import rows
from klamm.captures.storage.growing import begin
from klamm.captures.storage.segments import STREAM_AT, origin_of, schema, statistics_of
from tests.captures.stored_rows import ORIGIN, any_rows, frames


def written(folder: Path, *batches: int, seed: int = 1) -> tuple[Path, list]:
    """A sealed segment with batches of so many rows, and the rows."""
    segment = begin(folder / "a.arrow.growing", ORIGIN)
    expected = any_rows(sum(batches), seed)
    left = list(expected)
    for count in batches:
        segment.write(left[:count])
        del left[:count]
    return segment.seal(), expected


@pytest.mark.parametrize("seed", range(20))
def test_any_rows_are_read_by_arrow_as_they_were(tmp_path: Path, seed: int) -> None:
    path, expected = written(tmp_path, 1, 7, 64, seed % 9 + 1, 300, seed=seed)
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    found = []
    for place in range(file.num_record_batches):
        batch = file.get_batch(place)
        batch.validate(full=True)
        found += rows(batch)
    assert found == expected


def test_a_segment_is_a_file_and_from_its_ninth_byte_on_a_stream(tmp_path: Path) -> None:
    path, _ = written(tmp_path, 100, 100)
    whole = path.read_bytes()
    as_file = pa.ipc.open_file(whole).read_all()
    as_stream = pa.ipc.open_stream(whole[STREAM_AT:]).read_all()
    as_file.validate(full=True)
    assert as_stream.to_pylist() == as_file.to_pylist()
    assert as_file.schema.remove_metadata() == schema()


def test_a_segment_says_who_wrote_it_and_what_is_in_it(tmp_path: Path) -> None:
    segment = begin(tmp_path / "a.arrow.growing", ORIGIN)
    some = frames(30)
    segment.write(some[:10])
    segment.write([row._replace(api_key=3) for row in some[10:]])
    file = pa.ipc.open_file(pa.memory_map(str(segment.seal())))
    assert origin_of(file.schema.metadata) == ORIGIN
    last, metadata = file.get_batch_with_custom_metadata(file.num_record_batches - 1)
    statistics = statistics_of(metadata)
    assert last.num_rows == 0
    assert (statistics.rows, statistics.frames, statistics.lost) == (30, {18: 10, 3: 20}, 0)
    assert statistics.size_bytes == sum(row.size for row in some)
    assert (statistics.first_ns, statistics.last_ns) == (some[0].time_ns, some[-1].time_ns)
    assert [span.rows for span in statistics.batches] == [10, 20]


def test_a_segment_without_rows_is_one_too(tmp_path: Path) -> None:
    path, _ = written(tmp_path)
    assert pa.ipc.open_file(pa.memory_map(str(path))).read_all().num_rows == 0


def test_texts_that_are_no_unicode_are_shown_so(tmp_path: Path) -> None:
    segment = begin(tmp_path / "a.arrow.growing", ORIGIN)
    segment.write([frames(1)[0]._replace(client_id="app\udcff", text="\udcfe!")])
    table = pa.ipc.open_file(pa.memory_map(str(segment.seal()))).read_all()
    table.validate(full=True)
    assert (table["client_id"].to_pylist(), table["text"].to_pylist()) == (["app\\udcff"], ["\\udcfe!"])
