"""Makes a report from captures, with as few jobs of Spark as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import count
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.detectors.finding import Thresholds, findings
from klamm.pipeline.report import gathering
from klamm.pipeline.report.report import Report
from klamm.rules.expressions import Expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step = Callable[[str, int, int], None]  # the step, how much of it is done, and of how much


def reported(
    spark: SparkSession,
    paths: Sequence[str],
    detectors: Sequence[Detector],
    thresholds: Thresholds | None = None,
    where: Expression | None = None,
    plots: bool = True,
    on_step: Step = lambda what, done, of: None,
) -> Report:
    """`plots`: with the data that they need. Raises ExpressionError where `where` cannot be evaluated on
    tables.
    """
    from klamm.pipeline.tables.narrowing import chosen, tables_of
    from klamm.pipeline.tables.quick import is_small, quickly

    small, steps, done = is_small(paths), gathering.jobs(plots), count(1)
    on_step("reading", 0, steps)
    with quickly(spark) if small else nullcontext():
        try:
            tables = tables_of(spark, paths, small) if where is None else chosen(spark, paths, small, where)
            exchanges = gathering.lean(tables)
            if not small:
                exchanges.persist()
            traffic = gathering.gather(
                tables, exchanges, plots, lambda: on_step("reading", next(done), steps)
            )
            found = findings(tables, detectors, thresholds, lambda done, of: on_step("looking", done, of))
            seen = gathering.evidence_exchanges(exchanges, found)
        finally:
            spark.catalog.clearCache()
    return Report(paths, traffic, found, detectors, None if where is None else str(where), seen)
