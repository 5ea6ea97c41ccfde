"""Small captures: where to plan and compile queries takes Spark longer than to run them.

For these nothing is compiled, no plan is changed while it runs, and each table is made once and stands in the
plans that follow as rows without a history. All of that would be wrong for large ones: compiled code is some
times as fast, and what is lost with an executor could not be made again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from klamm.pipeline.tables import Tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL_BYTES = 64 << 20  # of segments
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
JVM = {  # of a session that is made for one such run: little of it runs often enough to be optimised
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m "
    "-XX:+UseSerialGC",
    "spark.driver.memory": "2g",
}


class AtHand(Tables):
    """Tables that are made when they are first asked for, in whole."""

    def _kept(self, table: DataFrame) -> DataFrame:
        return table.localCheckpoint()


def is_small(paths: Sequence[str]) -> bool:
    """Files and folders of this machine with few bytes in all."""
    total = 0
    for path in paths:
        try:
            entries = [path] if os.path.isfile(path) else [entry.path for entry in os.scandir(path)]
            total += sum(os.stat(entry).st_size for entry in entries)
        except OSError:
            return False
    return total <= SMALL_BYTES


@contextmanager
def quickly(spark: SparkSession) -> Iterator[None]:
    """With these settings, and then with those from before."""
    before = {name: spark.conf.get(name) for name in SETTINGS}
    _set(spark, SETTINGS)
    try:
        yield
    finally:
        _set(spark, before)


def _set(spark: SparkSession, settings: Mapping[str, str | None]) -> None:
    for name, value in settings.items():
        if value is not None:
            spark.conf.set(name, value)
