"""A capture over time, beside the same counted exchange by exchange."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from klamm.captures.captured import Captured
from klamm.captures.exchanges import exchanges
from klamm.captures.storage.reading import read
from klamm.captures.summaries import columns, timeline
from klamm.captures.summaries.columns import together
from klamm.captures.summaries.timeline import Steps, Timeline, steps
from tests.captures.random_work import random_work
from tests.captures.rows import START_NS, Talk, written

US, S = 1_000, 1_000_000_000


def counted(rows: list[Captured], folder: Path, of: Steps) -> Timeline:
    half = len(rows) // 2
    paths = [written(folder / "1.arrow", rows[:half]), written(folder / "2.arrow", rows[half:])]
    found = Timeline(of)
    for some in together(read(paths).batches(timeline.WANTED)):
        found.add(some)
    found.end()
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("most", [1, 7, 180])
def test_each_step_has_the_exchanges_that_ended_in_it_and_the_bytes_that_came(
    seed: int, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr("klamm.captures.storage.writing.BATCH_ROWS", 17)
    rows = random_work(seed)
    of = steps(min(row.time_ns for row in rows), max(row.time_ns for row in rows), most)
    found = counted(rows, tmp_path, of)
    ends = Counter(of.place(one.last.time_ns) for one in exchanges(rows))
    assert found.exchanges == [ends[place] for place in range(of.amount)]
    frames = [row for row in rows if row.kind == "frame"]
    sizes = Counter[int | None]()
    for row in frames:
        sizes[of.place(row.time_ns)] += row.size + 4
    assert found.bytes == [sizes[place] for place in range(of.amount)]
    assert (found.frames, found.rows) == (len(frames), len(rows))
    assert found.connections == len({row.connection for row in rows} - {None})
    assert found.unanswered == sum(one.response is None and one.first.awaits for one in exchanges(rows))
    assert found.lost == {"the disk is slow": 5, "something else": 2}


def test_what_is_outside_of_the_steps_is_left_out(tmp_path: Path) -> None:
    rows = Talk().opened().heartbeat(took_ms=1).heartbeat(took_ms=1).rows
    found = counted(rows, tmp_path, Steps(START_NS + 500 * US, 1000 * US, 1))
    assert (found.exchanges, found.unanswered) == ([1], 0)
    assert (found.of.place(START_NS), found.of.place(START_NS + 1500 * US)) == (None, None)


@pytest.mark.parametrize(
    ("first_ns", "last_ns", "step_ns", "amount"),
    [
        (0, 0, US, 1),
        (7 * US, 7 * US + 100, US, 1),
        (0, 179 * US, US, 180),
        (0, 180 * US, US, 181),
        (0, 181 * US, 2 * US, 91),
        (START_NS, START_NS + 90 * S, S // 2, 181),
        (START_NS + 1, START_NS + 3600 * S, 30 * S, 121),
        (START_NS, START_NS + 400 * 86_400 * S, 7 * 86_400 * S, 58),
        (0, 30 * 365 * 86_400 * S, 112 * 86_400 * S, 98),
    ],
)
def test_steps_are_round_and_few(first_ns: int, last_ns: int, step_ns: int, amount: int) -> None:
    found = steps(first_ns, last_ns, 181)
    assert (found.step_ns, found.amount) == (step_ns, amount)
    assert found.first_ns % found.step_ns == 0
    assert (found.place(first_ns), found.place(last_ns)) == (0, amount - 1)
