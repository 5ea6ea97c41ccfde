"""A capture summed up from its columns, beside the same counted row by row."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest

from klamm.captures.captured import Captured
from klamm.captures.exchanges import exchanges
from klamm.captures.storage.reading import read
from klamm.captures.summaries import columns, statistics, statistics_errors
from klamm.captures.summaries.histogram import FEW
from klamm.captures.summaries.statistics import Summing, Sums
from klamm.captures.summaries.statistics_errors import ErrorCounts
from tests.captures.random_work import random_work
from tests.captures.rows import Talk, in_time, lost, written


def test_memory_is_not_for_rows(tmp_path: Path) -> None:
    sizes = []
    for beats in (3 * FEW, 9 * FEW):
        talk = Talk()
        for _ in range(beats):
            talk.heartbeat(took_ms=1)
        path = written(tmp_path / f"{beats}.arrow", in_time(talk))
        summing = Summing()
        summing.add(read([path]).batches(statistics.WANTED))
        assert summing.sums.total.requests == beats
        sizes.append(len(pickle.dumps(summing.__dict__)))
    assert sizes[1] < sizes[0] + 100


def summed(paths: list[Path]) -> tuple[Sums, ErrorCounts]:
    summing, errors = Summing(), ErrorCounts()
    reading = read(paths)
    summing.add(reading.batches(statistics.WANTED))
    for batch in reading.batches(statistics_errors.WANTED):
        errors.add(batch)
    assert reading.problems == []
    return summing.end(), errors


@pytest.fixture(params=range(4))
def rows(request: pytest.FixtureRequest) -> list[Captured]:
    return random_work(request.param)


@pytest.fixture
def sums(rows: list[Captured], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sums:
    """Over two segments and several rounds, so that requests and their answers are not always in one."""
    monkeypatch.setattr(columns, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr("klamm.captures.storage.writing.BATCH_ROWS", 17)
    half = len(rows) // 2
    paths = [written(tmp_path / "1.arrow", rows[:half]), written(tmp_path / "2.arrow", rows[half:])]
    return summed(paths)[0]


def frames(rows: list[Captured], side: str) -> list[Captured]:
    return [row for row in rows if row.kind == "frame" and row.side == side]


def test_requests_and_responses_are_counted_by_api_version_and_client(
    rows: list[Captured], sums: Sums
) -> None:
    for side in ("request", "response"):
        wanted = Counter((row.api_key, row.api_version) for row in frames(rows, side))
        assert Counter({kind: getattr(use, f"{side}s") for kind, use in sums.apis.items()}) == wanted
        wanted_bytes = sum(row.size for row in frames(rows, side))
        assert getattr(sums.total, f"{side}_bytes") == wanted_bytes
        assert getattr(sums.total, f"largest_{side}") == max(row.size for row in frames(rows, side))
        by_client = Counter(row.client_id for row in frames(rows, side))
        assert (
            Counter({client: getattr(use, f"{side}s") for client, use in sums.clients.items()}) == by_client
        )


def test_latencies_are_those_of_the_exchanges(rows: list[Captured], sums: Sums) -> None:
    found = [one.latency_ns / 1e6 for one in exchanges(rows) if one.latency_ns is not None]
    histograms = sums.latencies_ms.values()
    assert sum(len(each) for each in histograms) == len(found)
    assert sum(each.total for each in histograms) == pytest.approx(sum(found))
    assert max(each.most for each in histograms) == max(found)
    assert min(each.least for each in histograms) == min(found)
    for (key, version), each in sums.latencies_ms.items():
        of_kind = sorted(
            one.latency_ns / 1e6
            for one in exchanges(rows)
            if one.latency_ns is not None and (one.first.api_key, one.first.api_version) == (key, version)
        )
        if len(of_kind) <= FEW:
            assert each.quantile(0.5) == of_kind[(len(of_kind) - 1) // 2]
            assert each.quantile(0.99) == of_kind[-1]


def test_what_has_no_answer_is_counted(rows: list[Captured], sums: Sums) -> None:
    wanted = [one for one in exchanges(rows) if one.response is None and one.request and one.request.awaits]
    assert sums.unanswered == len(wanted)


def test_connections_fates_gaps_and_times_are_told(rows: list[Captured], sums: Sums) -> None:
    of = {(row.connection.capture, row.connection.number) for row in rows if row.connection is not None}
    assert sums.connections.keys() == of
    assert sums.fates == Counter((row.side, row.fate) for row in rows if row.fate != "passed")
    assert sums.lost == {"the disk is slow": 5, "something else": 2}
    assert (sums.first_ns, sums.last_ns) == (
        min(row.time_ns for row in rows),
        max(row.time_ns for row in rows),
    )
    assert sums.kinds == Counter(row.kind for row in rows)


def test_errors_are_counted_where_responses_repeat_and_where_not(
    rows: list[Captured], tmp_path: Path
) -> None:
    _, errors = summed([written(tmp_path / "all.arrow", rows * 3)])
    wanted: Counter[str] = Counter()
    for row in frames(rows, "response"):
        if row.api_key == 12:
            code = int.from_bytes((row.frame or b"")[9:11], "big")
            wanted.update({0: [], 27: ["REBALANCE_IN_PROGRESS"] * 3, 25: ["UNKNOWN_MEMBER_ID"] * 3}[code])
    assert errors.errors.get((12, 4), Counter()) == wanted
    assert {kind for kind, counts in errors.errors.items() if counts} <= {(12, 4)}
    assert errors.unread == 0


def test_errors_stand_beside_offsets_that_change(tmp_path: Path) -> None:
    talk = Talk()
    for offset in range(20):
        part = {"index": 0, "error_code": 6 if offset % 3 == 0 else 0, "base_offset": 2**40 + offset}
        talk.exchange("Produce", 9, {}, {"responses": [{"name": "t", "partition_responses": [part]}]})
    _, errors = summed([written(tmp_path / "a.arrow", talk.rows)])
    assert errors.errors == {(0, 9): Counter(NOT_LEADER_OR_FOLLOWER=7)}


def test_errors_are_read_beside_records_that_are_blank(tmp_path: Path) -> None:
    parts = [
        {"partition_index": 1, "error_code": 0, "records": b"secret" * 9},
        {"partition_index": 2, "error_code": 3, "records": b""},
    ]
    talk = Talk().exchange("Fetch", 11, {}, {"responses": [{"topic": "t", "partitions": parts}]})
    frame = talk.rows[1].frame or b""
    at = frame.index(b"secret")
    blank = frame.replace(b"secret" * 9, bytes(54))
    rows = [talk.rows[0], talk.rows[1]._replace(frame=blank, blanks=((at, 54),))]
    _, errors = summed([written(tmp_path / "a.arrow", rows)])
    assert errors.errors == {(1, 11): Counter(UNKNOWN_TOPIC_OR_PARTITION=1)}


def test_responses_that_klamm_cannot_read_are_counted(tmp_path: Path) -> None:
    rows = [row._replace(api_key=9999) for row in Talk().heartbeat().rows]
    sums, errors = summed([written(tmp_path / "a.arrow", rows)])
    assert (errors.unread, sums.apis[9999, 4].requests) == (1, 1)


def test_nothing_comes_to_nothing(tmp_path: Path) -> None:
    sums, errors = summed([])
    assert (sums.rows, sums.total.requests, errors.errors) == (0, 0, {})


def test_gaps_alone_are_summed_up(tmp_path: Path) -> None:
    sums, _ = summed([written(tmp_path / "a.arrow", [lost(5)])])
    assert (sums.rows, sums.lost, sums.connections) == (1, {"the disk is slow": 5}, {})
