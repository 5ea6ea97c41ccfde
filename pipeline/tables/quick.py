"""Small captures: where to plan and compile queries takes Spark longer than to run them.

For these nothing is compiled, no plan is changed while it runs, each task reads several parts, and each table
is made once and stands in the plans that follow as rows without a history. All of that would be wrong for
large ones: compiled code is some times as fast once it is, rows kept as they are take more memory, and what
is lost with an executor could not be made again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from klamm.pipeline.tables import Tables
from klamm.pipeline.tables.reading import TASKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL_BYTES = 384 << 20  # of segments
BRIEF_BYTES = 96 << 20  # of these, where the run is over before optimised code would pay
SETTINGS = {
    TASKS: str(os.cpu_count() or 1),
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
JVM = {  # of a session that is made for one such run
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.driver.memory": "2g",
}
BRIEF_JVM = JVM | {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:+UseSerialGC",
}


class AtHand(Tables):
    """Tables that are made when they are first asked for, in whole."""

    def _kept(self, table: DataFrame) -> DataFrame:
        return table.localCheckpoint()


def is_small(paths: Sequence[str]) -> bool:
    """Files and folders of this machine with few bytes in all."""
    return _bytes(paths) <= SMALL_BYTES


def jvm(paths: Sequence[str]) -> Mapping[str, str]:
    """Settings of a session that is made to run over these once."""
    total = _bytes(paths)
    return BRIEF_JVM if total <= BRIEF_BYTES else JVM if total <= SMALL_BYTES else {}


def _bytes(paths: Sequence[str]) -> float:
    """The size of the paths; infinity for a path on another machine."""
    total = 0
    for path in paths:
        try:
            entries = [path] if os.path.isfile(path) else [entry.path for entry in os.scandir(path)]
            total += sum(os.stat(entry).st_size for entry in entries)
        except OSError:
            return math.inf
    return total


@contextmanager
def quickly(spark: SparkSession) -> Iterator[None]:
    """Runs with these settings, and restores those from before."""
    before = {name: spark.conf.get(name, None) for name in SETTINGS}
    _set(spark, SETTINGS)
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
