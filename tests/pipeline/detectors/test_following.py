"""Findings while a capture grows: each once, again when it got worse, and not again after a restart."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from klamm.pipeline.detectors.detector import finding as as_finding
from klamm.pipeline.detectors.detector import measured
from klamm.pipeline.detectors.finding import Findings
from klamm.pipeline.detectors.following import TIMES, Look, Progress, follow
from klamm.pipeline.tables import Tables
from tests.captures.rows import Talk, connection, written
from tests.pipeline.report.reports import detector, finding

MINUTE_MS = 60_000.0


def failing(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Clients whose exchanges have errors."""
    rows = tables.exchanges.where(F.size("errors") > 0).groupBy("cluster", "client_id")
    counted = rows.agg(F.count(F.lit(1)).alias("count"), *measured())
    return as_finding(counted, F.format_string("%d errors", F.col("count")))


def segment(folder: Path, number: int, client_id: str, errors: int, at_ms: float = 0.0) -> None:
    talk = Talk(connection(number), client_id, at_ms)
    for _ in range(errors):
        talk.heartbeat(27)
    written(folder / f"20231114T2213{20 + number}Z-a-{number:06}.arrow", talk.heartbeat().rows)


class Looks:
    """The findings of each look; each look but the last is followed by a change."""

    def __init__(self, *then: Any) -> None:
        self.then, self.news, self.requests = list(then), list[list[tuple[str | None, int]]](), 0

    def look(self, look: Look) -> None:
        self.news.append([(one.client_id, one.count) for one in look.news])
        assert look.found.failed == {}
        if self.then:
            self.then.pop(0)()
        else:
            self.stop = True

    stop = False

    def stopped(self) -> bool:
        return self.stop


def test_what_grows_is_told_once_and_again_when_it_is_worse_and_not_again_after_a_restart(
    spark: SparkSession, tmp_path: Path
) -> None:
    capture, checkpoint = tmp_path / "capture", tmp_path / "checkpoint"
    capture.mkdir()
    checkpoint.mkdir()
    segment(capture, 0, "old", 3, at_ms=-30 * MINUTE_MS)  # before the window of the first look
    segment(capture, 1, "app", 1)
    failures = [detector("failures", find=failing)]

    def watch(*then: Any) -> tuple[Looks, Progress]:
        looks = Looks(*then)
        progress = follow(
            spark, [str(capture)], failures, looks.look, looks.stopped, checkpoint, 600, keep=True
        )
        return looks, progress

    looks, progress = watch(
        lambda: segment(capture, 2, "app", 1),
        lambda: segment(capture, 3, "app", TIMES),
        lambda: segment(capture, 4, "late", 1, at_ms=30 * MINUTE_MS),
    )
    assert looks.news == [[("app", 1)], [], [("app", 2 + TIMES)], [("late", 1)]]
    requests = 4 + 2 + 2 + 1 + TIMES + 2
    assert (progress.requests, progress.frames) == (requests, 2 * requests)

    segment(capture, 5, "late", 1, at_ms=31 * MINUTE_MS)
    segment(capture, 6, "other", 3, at_ms=31 * MINUTE_MS)
    looks, progress = watch()
    assert looks.news == [[("other", 3)]]
    assert progress.requests == requests + 6


@pytest.mark.parametrize(
    ("severity", "count", "reported"),
    [("medium", 9, False), ("low", 99, False), ("medium", 100, True), ("high", 1, True)],
)
def test_worse_is_graver_or_ten_times_as_frequent(severity: str, count: int, reported: bool) -> None:
    one = Progress()
    first = finding(severity="medium", count=10)
    assert one.news(Findings([first])) == [first]
    again = finding(severity=severity, count=count)
    assert (one.news(Findings([again])) == [again]) is reported
