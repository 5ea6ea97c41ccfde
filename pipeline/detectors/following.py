"""Reports findings while a capture grows: when they come up, and again only when they got worse.

A stream of Spark reads headers as they are added, each once, also across restarts with a checkpoint: it
counts, and tells how late it is in the capture. After each of its batches the detectors look at the capture
itself, from `window_s` before that time on. The price: a frame is decoded anew as long as it is in the
window, so a look takes as long as `klamm analyze` of so much traffic, and the next begins when it has ended;
what lasts longer than the window (offsets that nobody commits for an hour) is not seen. In return nothing is
kept but the capture, memory is bounded by the window, and findings are those that `klamm analyze` would tell.

What was told is written down after it was told: a process that is killed between the two tells it twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Severity
from klamm.pipeline.detectors.finding import SEVERITIES, Finding, Findings, Thresholds, findings
from klamm.pipeline.spark import register
from klamm.pipeline.tables import Tables
from klamm.pipeline.tables.narrowing import since
from klamm.pipeline.tables.quick import is_small, quickly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "kind string, side string, time timestamp, lost bigint"
EVERY_S = 5  # between two looks at a capture that does not grow
POLL_S = 1
ATTEMPTS = 5  # to start the stream: Spark waits 10 s for its Python process, which is short on a busy machine
TOO_BUSY = "Python worker failed to connect back"
TIMES = 10  # so many times as frequent is worse
PROGRESS_FILE = "told.json"
COUNTS = ("batch", "requests", "frames", "lost")  # of the progress, as it is kept
Key = tuple[str, str, str | None, str | None]


@dataclass(frozen=True, slots=True)
class Known:
    """The severity and count of a finding that was reported."""

    severity: Severity
    count: int

    def is_worse(self, one: Finding) -> bool:
        graver = SEVERITIES.index(one.severity) < SEVERITIES.index(self.severity)
        return graver or one.count >= TIMES * self.count


@dataclass
class Progress:
    """The frames read and the findings reported so far, kept in a file if there is a folder for it."""

    folder: Path | None = None
    batch: int = -1
    requests: int = 0
    frames: int = 0
    lost: int = 0
    last: datetime | None = None
    known: dict[Key, Known] = field(default_factory=dict)

    def news(self, found: Findings) -> list[Finding]:
        """The findings that are new or got worse; they count as reported from now on."""
        new = []
        for one in found.found:
            key = (one.detector, one.cluster, one.client_id, one.subject)
            before = self.known.get(key)
            if before is None or before.is_worse(one):
                self.known[key] = Known(one.severity, one.count)
                new.append(one)
        return new

    def load(self) -> None:
        """Reads the file of an earlier process."""
        if self.folder is None or not (self.folder / PROGRESS_FILE).exists():
            return
        saved = json.loads((self.folder / PROGRESS_FILE).read_text())
        self.batch, self.requests, self.frames, self.lost = (saved[name] for name in COUNTS)
        self.known = {tuple(key): Known(*value) for key, value in saved["known"]}

    def save(self) -> None:
        """Writes the file whole, or not at all."""
        if self.folder is None:
            return
        part = self.folder / f".{PROGRESS_FILE}.part"
        saved = {name: getattr(self, name) for name in COUNTS} | {
            "known": [[key, [known.severity, known.count]] for key, known in self.known.items()]
        }
        part.write_text(json.dumps(saved))
        os.replace(part, self.folder / PROGRESS_FILE)


@dataclass(frozen=True)
class Look:
    """The state after a batch: new findings, and all findings of the window; `tables` are those of the
    window.
    """

    progress: Progress
    news: list[Finding]
    found: Findings
    tables: Tables


def follow(
    spark: SparkSession,
    paths: Sequence[str],
    detectors: Sequence[Detector],
    on_look: Callable[[Look], None],
    stopped: Callable[[], bool],
    checkpoint: Path,
    window_s: float = 600,
    thresholds: Thresholds | None = None,
    keep: bool = False,
) -> Progress:
    """Looks until `stopped` says so; gives the progress. `keep`: go on from the `checkpoint` of an earlier
    call. Raises the errors of a look.
    """
    progress = Progress(checkpoint if keep else None)
    progress.load()

    def look(batch: DataFrame, number: int) -> None:
        if number <= progress.batch or stopped() or not _count(batch, progress):
            return
        assert progress.last is not None
        small = is_small(paths)
        with quickly(spark) if small else nullcontext():
            try:
                tables = since(spark, paths, small, progress.last - timedelta(seconds=window_s))
                found = findings(tables, detectors, thresholds)
                if not stopped():
                    on_look(Look(progress, progress.news(found), found, tables))
                    progress.batch = number
                    progress.save()
            finally:
                spark.catalog.clearCache()

    from pyspark.errors import StreamingQueryException

    register(spark)
    reader = spark.readStream.format("klamm").schema(COLUMNS).option("paths", json.dumps(list(paths)))
    writer = (
        reader.load().writeStream.foreachBatch(look).option("checkpointLocation", str(checkpoint / "stream"))
    )
    for attempts in reversed(range(ATTEMPTS)):
        query = writer.trigger(processingTime=f"{EVERY_S} seconds").start()
        try:
            while not stopped() and not query.awaitTermination(POLL_S):
                pass
            break
        except StreamingQueryException as error:
            if not attempts or TOO_BUSY not in str(error):
                raise
        finally:
            query.stop()
    return progress


def _count(batch: DataFrame, progress: Progress) -> bool:
    """Adds the counts of the new rows; False if there are none."""
    from pyspark.sql import functions as F

    (row,) = batch.agg(
        F.count_if(F.col("kind") == "frame"),
        F.count_if((F.col("kind") == "frame") & (F.col("side") == "request")),
        F.coalesce(F.sum("lost"), F.lit(0)),
        F.unix_micros(F.max("time")),
    ).collect()
    frames, requests, lost, last_us = row
    progress.frames += frames
    progress.requests += requests
    progress.lost += lost
    if last_us is not None:
        progress.last = datetime.fromtimestamp(last_us / 1e6, UTC)
    return bool(frames) and last_us is not None
