"""The exchanges that ended within a time, beside those of the whole capture that did."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from klamm.captures import ended
from klamm.captures.captured import Captured
from klamm.captures.ended import Ended
from klamm.captures.exchanges import Exchange, exchanges
from klamm.captures.period import Period
from klamm.captures.storage.reading import read
from klamm.captures.summaries import columns
from tests.captures.random_work import random_work
from tests.captures.rows import MS, START_NS, Talk, connection, in_time, written


@pytest.fixture(params=range(4))
def rows(request: pytest.FixtureRequest) -> list[Captured]:
    return random_work(request.param)


@pytest.fixture
def paths(rows: list[Captured], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two segments of small batches, looked through in small steps."""
    monkeypatch.setattr(columns, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr("klamm.captures.storage.writing.BATCH_ROWS", 17)
    monkeypatch.setattr(ended, "LOOK_NS", 10 * MS)
    half = len(rows) // 2
    written(tmp_path / "1.arrow", rows[:half])
    written(tmp_path / "2.arrow", rows[half:])
    return [str(tmp_path)]


def within(period: Period, one: Exchange) -> bool:
    time_ns = one.last.time_ns
    return (period.since_ns or 0) <= time_ns and (period.until_ns is None or time_ns < period.until_ns)


def test_a_part_has_the_exchanges_of_the_whole_that_ended_in_it(paths: list[str]) -> None:
    whole = list(exchanges(read(paths)))
    times = sorted(one.last.time_ns for one in whole)
    draw = random.Random(len(times))
    for _ in range(40):
        since, until = sorted(draw.choice(times) + draw.choice([-1, 0, 1]) for _ in range(2))
        for period in (Period(since, until), Period(since), Period(None, until)):
            wanted = [one for one in whole if within(period, one)]
            found = list(Ended(paths, period))
            assert sorted(found, key=repr) == sorted(wanted, key=repr)
            answered = [one for one in wanted if one.response is not None]
            assert [one for one in found if one.response is not None] == answered
    assert list(Ended(paths, Period())) == whole


def test_parts_that_meet_have_each_exchange_once(paths: list[str]) -> None:
    whole = list(exchanges(read(paths)))
    borders = [START_NS + at * 100 * MS for at in range(0, 60, 3)]
    parts = [Period(None, borders[0]), *map(Period, borders, borders[1:]), Period(borders[-1])]
    found = [one for part in parts for one in Ended(paths, part)]
    assert sorted(found, key=repr) == sorted(whole, key=repr)


def test_a_request_that_waited_for_minutes_is_found_again(tmp_path: Path) -> None:
    slow, busy = Talk(connection(1)).opened(), Talk(connection(2)).opened()
    slow.exchange("JoinGroup", 5, {"group_id": "g"}, {"error_code": 0}, took_ms=300_000)
    for _ in range(500):
        busy.heartbeat(took_ms=700)
    path = written(tmp_path / "a.arrow", in_time(slow, busy))
    answered = START_NS + 300_000 * MS
    (one,) = (one for one in Ended([str(path)], Period(answered, answered + 1)) if one.first.api_key == 11)
    assert one.latency_ns == 300_000 * MS
    before = Ended([str(path)], Period(START_NS, START_NS + 60_000 * MS))
    assert {one.first.api_key for one in before} == {12}  # its request is not shown as one without an answer


def test_an_answer_whose_request_is_not_in_the_capture_is_there_all_the_same(tmp_path: Path) -> None:
    talk = Talk().opened().heartbeat().heartbeat()
    del talk.rows[1]
    talk.rows[-1] = talk.rows[-1]._replace(exchange=-1)
    path = written(tmp_path / "a.arrow", talk.rows)
    found = list(Ended([str(path)], Period(START_NS, START_NS + 10 * MS)))
    assert [(one.request is None, one.response is None) for one in found] == [
        (True, False), (True, False), (False, True),
    ]  # fmt: skip


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "a.arrow", Talk().opened().heartbeat().rows)
    (tmp_path / "b.arrow").write_bytes(b"nothing of a capture")
    part = Ended([str(tmp_path)], Period(START_NS))
    assert len(list(part)) == 1
    assert part.problems == [f"{path.with_name('b.arrow')}: no segment of a capture"]
