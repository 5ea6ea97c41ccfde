"""Detectors run over the tables of a capture: what they found, the gravest first.

A few detectors make one job of Spark together: planning thirty queries of one each takes longer than to run
them over a small capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from klamm.pipeline.detectors.detector import Detector, Severity
from klamm.pipeline.schemas import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

SEVERITIES: tuple[Severity, ...] = get_args(Severity)  # the gravest first
CAP = 50  # findings of one detector that come here; the rest is counted
TOGETHER = 4  # detectors in one job
AT_ONCE = 3  # jobs of Spark
LONGEST = 300  # characters of why a detector failed

Thresholds = Mapping[str, Mapping[str, float]]  # by detector and name, where they are not the detector's own
Begun = dict[Future["Findings"], Sequence[Detector]]


class Evidence(NamedTuple):
    """An exchange to look at; of a connection, its first. `time_us`: since 1970."""

    time_us: int
    capture: str
    connection: int
    exchange: int | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of the table of that name, with times in us since 1970."""

    detector: str
    severity: Severity
    cluster: str
    client_id: str | None
    subject: str | None
    first_us: int
    last_us: int
    count: int
    what: str
    evidence: tuple[Evidence, ...]


@dataclass
class Findings:
    """`more`: by detector, those beyond CAP. `failed`: by detector, why it found nothing, in a line."""

    found: list[Finding] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, other: Findings) -> None:
        """The findings of other detectors too."""
        self.found = sorted(self.found + other.found, key=rank)
        self.more += other.more
        self.failed |= other.failed


def rank(one: Finding) -> tuple[Any, ...]:
    """The gravest first; of one detector together, the most frequent first."""
    severity = SEVERITIES.index(one.severity)
    return severity, one.detector, -one.count, one.cluster, one.client_id or "", one.subject or ""


def findings(tables: Tables, detectors: Sequence[Detector], thresholds: Thresholds | None = None) -> Findings:
    """The findings of these detectors. A detector that fails is among the failed, and the others go on."""
    with jobs_at_once() as pool:
        return ended(begun(pool, tables, detectors, thresholds))


@contextmanager
def jobs_at_once() -> Iterator[Executor]:
    """Threads for jobs of Spark. After an exception, jobs that have not begun are left out."""
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def begun(
    pool: Executor, tables: Tables, detectors: Sequence[Detector], thresholds: Thresholds | None = None
) -> Begun:
    """Jobs that look for problems, with the detectors of each."""
    batches = [detectors[at : at + TOGETHER] for at in range(0, len(detectors), TOGETHER)]
    return {pool.submit(_found, tables, batch, thresholds or {}): batch for batch in batches}


def ended(jobs: Begun) -> Findings:
    """The findings of all these jobs."""
    all_found = Findings()
    for job in as_completed(jobs):
        all_found.add(job.result())
    return all_found


def table(tables: Tables, detectors: Iterable[Detector], thresholds: Thresholds | None = None) -> DataFrame:
    """The table "findings" of all of them, lazily: for captures where they are many. It fails if one does."""
    return _united([_rows(tables, one, thresholds or {}) for one in detectors])


def _found(tables: Tables, detectors: Sequence[Detector], thresholds: Thresholds) -> Findings:
    """The findings of all together; if one detector fails, of each alone."""
    found = Findings()
    frames: dict[str, DataFrame] = {}
    for one in detectors:
        try:
            frames[one.name] = _rows(tables, one, thresholds)
        except Exception as wrong:  # a detector may be anybody's
            found.failed[one.name] = reason(wrong)
    try:
        if frames:
            _collect(_united(list(frames.values())), found)
    except Exception as wrong:
        if len(frames) == 1:
            found.failed[next(iter(frames))] = reason(wrong)
        else:
            for one in detectors:
                if one.name in frames:
                    found.add(_found(tables, [one], thresholds))
    return found


def _rows(tables: Tables, detector: Detector, thresholds: Thresholds) -> DataFrame:
    from pyspark.sql import functions as F

    values = {name: threshold.value for name, threshold in detector.thresholds.items()}
    rows = detector.find(tables, {**values, **thresholds.get(detector.name, {})})
    types = {column.name: column.type for column in TABLES["findings"].columns}
    named = rows.withColumn("detector", F.lit(detector.name))
    return named.select(*(F.col(name).cast(type).alias(name) for name, type in types.items()))


def _united(frames: list[DataFrame]) -> DataFrame:
    return reduce(lambda one, other: one.unionAll(other), frames)


def _collect(rows: DataFrame, found: Findings) -> None:
    """At most CAP rows of each detector, the gravest and most frequent, and how many there are."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    grave = F.array_position(F.array(*map(F.lit, SEVERITIES)), F.col("severity"))
    of_one = Window.partitionBy("detector")
    placed = rows.withColumns(
        {
            "place": F.row_number().over(of_one.orderBy(grave, F.col("count").desc())),
            "of": F.count(F.lit(1)).over(of_one),
            "first": F.unix_micros("first"),
            "last": F.unix_micros("last"),
            "evidence": F.transform(
                "evidence",
                lambda one: F.struct(
                    F.unix_micros(one["time"]), one["capture"], one["connection"], one["exchange"]
                ),
            ),
        }
    )
    for row in placed.where(F.col("place") <= CAP).collect():
        *values, evidence, _, of = row
        values.append(tuple(Evidence(*one) for one in evidence or ()))
        found.found.append(Finding(*values))
        if of > CAP:
            found.more[row[0]] = of - CAP
    found.found.sort(key=rank)


def reason(wrong: Exception) -> str:
    """Why, in one line: Spark's own errors go on with plans and stacks."""
    lines = str(wrong).strip().splitlines() or [type(wrong).__name__]
    return lines[0][:LONGEST]
