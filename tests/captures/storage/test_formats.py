"""Segments in the format before the newest, without the column `principal`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from klamm.captures.captured import Captured
from klamm.captures.storage.growing import begin
from klamm.captures.storage.leftovers import CUT, seal_leftovers
from klamm.captures.storage.opening import open_segment
from klamm.captures.storage.reading import read
from klamm.captures.storage.segments import COLUMNS, FORMAT, STREAM_AT, columns_of_format
from klamm.captures.storage.stored import whole
from klamm.captures.storage.writing import write_file
from tests.captures.stored_rows import ORIGIN, any_rows, frame

OLD = replace(ORIGIN, format=1)
NAME = "20240101T000000Z-klamm-0-00000001-000001.arrow"


def nameless(rows: list[Captured]) -> list[Captured]:
    """The rows as an older klamm would have written them: filled, and without a principal."""
    return [
        whole(row._replace(connection=row.connection and row.connection._replace(principal=None)))
        for row in rows
    ]


def test_each_format_has_the_columns_of_the_one_before_and_then_its_own() -> None:
    for number in range(1, FORMAT):
        before, after = list(columns_of_format(number)), list(columns_of_format(number + 1))
        assert after[: len(before)] == before
    assert columns_of_format(FORMAT) == COLUMNS
    assert [*COLUMNS][len(columns_of_format(1)) :] == ["principal"]


@pytest.mark.parametrize("seed", range(5))
def test_an_older_segment_is_read_and_has_no_principals(tmp_path: Path, seed: int) -> None:
    rows = any_rows(200, seed)
    write_file(tmp_path / NAME, map(whole, rows), OLD)
    with pa.memory_map(str(tmp_path / NAME)) as file:
        assert "principal" not in pa.ipc.read_schema(file.read_buffer().slice(STREAM_AT)).names
    reading = read(tmp_path)
    assert sorted(reading) == sorted(nameless(rows)), reading.problems
    [batch] = read(tmp_path).batches({"time_ns", "principal"})
    assert batch.column("principal").null_count == batch.num_rows
    assert not open_segment(tmp_path / NAME, {"principal"}).has("principal", ["User:CN=a"])


def test_a_new_segment_has_the_principal_of_each_connection(tmp_path: Path) -> None:
    rows = any_rows(200, 1)
    write_file(tmp_path / NAME, map(whole, rows), ORIGIN)
    assert {row.connection.principal for row in read(tmp_path) if row.connection} == {
        None, "User:CN=app-3,O=größer", "User:CN=app-4,O=größer",
    }  # fmt: skip


def test_an_older_segment_that_was_left_over_is_sealed_in_its_format(tmp_path: Path) -> None:
    growing = begin(tmp_path / f"{NAME}.growing", OLD)
    growing.write([frame(0), frame(1)])
    growing.abandon()
    reading = read(tmp_path)
    assert len(list(reading)) == 2
    seal_leftovers(tmp_path)
    write_file(tmp_path / NAME.replace("1.arrow", "2.arrow"), [frame(2)], ORIGIN)
    reading = read(tmp_path)
    assert [row.text or row.correlation_id for row in reading] == [0, 1, CUT, 2]
    assert reading.problems == []
