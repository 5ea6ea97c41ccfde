"""What a capture holds and when, beside what the list of exchanges shows of the same times."""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import Writer, write_file
from klamm.dashboards.web.captured import Captures
from klamm.dashboards.web.captures import overview
from klamm.dashboards.web.captures.counting import Overviews
from klamm.dashboards.web.captures.overview import Overview, overviews
from klamm.dashboards.web.lines import Row, Rows
from klamm.dashboards.web.source import Wish
from tests.captures.random_work import random_work
from tests.captures.rows import START_NS, Talk, lost, written


def rows(source: Captures, wish: Wish) -> list[Row]:
    async def read() -> list[Row]:
        return [
            row
            async for each in source.found(wish)
            for key, one in each.exchanges
            for row in Rows().read(key, one)
        ]

    return asyncio.run(read())


def last(path: Path) -> Overview:
    found = list(overviews([str(path)]))
    assert [one.whole for one in found] == [False] * (len(found) - 1) + [True]
    return found[-1]


@pytest.mark.parametrize("seed", range(4))
def test_a_step_has_as_many_exchanges_and_errors_as_the_list_of_its_time(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "MOST_STEPS", 12)
    work = random_work(seed)
    written(tmp_path / "1.arrow", work[: len(work) // 2])
    written(tmp_path / "2.arrow", work[len(work) // 2 :])
    found = last(tmp_path)
    steps = found.histogram
    assert steps is not None
    source = Captures([str(tmp_path)])
    for place, exchanges in enumerate(steps.exchanges):
        since, until = (round(steps.first + at * steps.step, 6) for at in (place, place + 1))
        listed = rows(source, Wish(since=since, until=until))
        assert (exchanges, steps.errors[place]) == (len(listed), sum(bool(row.errors) for row in listed))
    whole = rows(source, Wish())
    assert (found.exchanges, found.errors) == (len(whole), sum(bool(row.errors) for row in whole))
    assert sum(steps.bytes) == sum(row.request_bytes + (row.response_bytes or 0) for row in whole)
    assert found.unanswered == sum(row.response_bytes is None and row.api == "Heartbeat" for row in whole)


def test_the_ends_of_segments_tell_the_most_before_anything_is_counted(tmp_path: Path) -> None:
    talk = Talk().opened().metadata().produce().heartbeat(27)
    write_file(tmp_path / "a.arrow", talk.rows, Origin("run", "keep", {"main": "the-id"}))
    first, *_, whole = overviews([str(tmp_path)], clock=count().__next__)
    assert (first.frames, first.segments, first.growing, first.cut) == (6, 1, 0, 0)
    assert (first.records, first.clusters) == (["keep"], {"main": "the-id"})
    assert first.bytes == (tmp_path / "a.arrow").stat().st_size
    assert (first.first, first.last) == (START_NS / 1e9, START_NS / 1e9 + 0.003)
    assert (first.counted, first.histogram, whole.counted) == (False, None, True)
    assert (whole.frames, whole.exchanges, whole.connections, whole.errors) == (6, 3, 1, 1)


def test_what_is_missing_or_cannot_be_read_is_told(tmp_path: Path) -> None:
    written(
        tmp_path / "a.arrow", [*Talk().opened().heartbeat().rows, lost(7), lost(0, "the rest of a frame")]
    )
    data = bytearray(written(tmp_path / "b.arrow", Talk().opened().metadata().rows).read_bytes())
    at = data.index(b"orders")
    data[at] ^= 1
    (tmp_path / "b.arrow").write_bytes(data)
    (tmp_path / "c.arrow").write_bytes(b"x")
    found = last(tmp_path)
    assert found.lost == {"the disk is slow": 7, "the rest of a frame": 0}
    assert len(found.problems) == 2
    damaged, foreign = sorted(found.problems)
    assert damaged.startswith(f"{tmp_path / 'b.arrow'}: damaged: the column frame is not what was written")
    assert foreign == f"{tmp_path / 'c.arrow'}: no segment of a capture"


def test_a_segment_that_grows_and_one_of_a_killed_klamm_are_told_apart(tmp_path: Path) -> None:
    writer = Writer(tmp_path, Origin("run"))
    writer.write(Talk().opened().heartbeat().rows)
    writer.flush()
    growing = last(tmp_path)
    assert (growing.segments, growing.growing, growing.cut, growing.exchanges) == (1, 1, 0, 1)
    assert growing.problems == []
    writer.abandon()
    (problem,) = last(tmp_path).problems
    assert "its klamm was killed" in problem


def test_a_folder_without_a_capture_is_told(tmp_path: Path) -> None:
    found = last(tmp_path)
    assert (found.segments, found.exchanges, found.histogram) == (0, 0, None)
    assert found.problems == [f"{tmp_path}: no capture is in this folder"]


def told(found: Overviews) -> list[Overview]:
    async def read() -> list[Overview]:
        return [each async for each in found.told()]

    return asyncio.run(read())


@pytest.mark.parametrize("large", [0, 1 << 30], ids=["in a process", "in a thread"])
def test_files_that_have_not_changed_are_read_once(large: int, tmp_path: Path) -> None:
    written(tmp_path / "a.arrow", Talk().opened().heartbeat().rows)
    found = Overviews([str(tmp_path)], large)
    head, *_, whole = told(found)
    assert (head.frames, head.counted, whole) == (2, False, last(tmp_path))
    assert told(found) == [whole]
    written(tmp_path / "b.arrow", Talk().opened().heartbeat().heartbeat().rows)
    *_, more = told(found)
    assert (whole.exchanges, more.exchanges, more.whole) == (1, 3, True)


def test_a_count_that_does_not_come_to_its_end_tells_why_and_is_not_remembered(tmp_path: Path) -> None:
    written(tmp_path / "a.arrow", Talk().opened().heartbeat().rows)
    for words, problem in (
        (("raise MemoryError('no more')",), "not all is counted: MemoryError: no more"),
        (("import sys; sys.exit(3)",), "not all is counted: exit 3"),
    ):
        found = Overviews([str(tmp_path)], 0, (sys.executable, "-c", *words))
        for _ in range(2):
            *_, end = told(found)
            assert (end.whole, end.problem, end.frames) == (False, problem, 2)


def test_the_process_of_a_page_that_goes_away_ends(tmp_path: Path) -> None:
    written(tmp_path / "a.arrow", Talk().opened().heartbeat().rows)
    script = (
        "import json, os, sys, time; one = json.loads(sys.argv[1]); one['frames'] = os.getpid(); "
        "print(json.dumps(one), flush=True); time.sleep(600)"
    )
    a_part = msgspec.json.encode(replace(last(tmp_path), whole=False)).decode()

    async def leave() -> int:
        found = Overviews([str(tmp_path)], 0, (sys.executable, "-c", script, a_part)).told()
        await anext(found)
        part = await anext(found)
        await found.aclose()
        return part.frames

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(leave()), 0)
