"""Makes a report from captures, with as few jobs of Spark as possible."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, as_completed
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from klamm.pipeline.detectors.detector import Detector
from klamm.pipeline.detectors.finding import Thresholds, begun, ended, jobs_at_once
from klamm.pipeline.report import gathering
from klamm.pipeline.report.report import Report
from klamm.rules.expressions import Expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step = Callable[[str, int, int], None]  # the step, how much of it is done, and of how much (0: not known)


def reported(
    spark: SparkSession,
    paths: Sequence[str],
    detectors: Sequence[Detector],
    thresholds: Thresholds | None = None,
    where: Expression | None = None,
    plots: bool = True,
    on_step: Step = lambda what, done, of: None,
    asked: Collection[str] = (),
) -> Report:
    """`plots`: with the data that they need. `asked`: client ids; those with exchanges are told. Raises
    ExpressionError where `where` cannot be evaluated on tables.

    Detectors look for problems while the traffic is summed up: a good half of both is Spark's planning, which
    takes one core for each query.
    """
    from klamm.pipeline.tables.narrowing import chosen, tables_of
    from klamm.pipeline.tables.quick import is_small, quickly

    small = is_small(paths)
    on_step("reading", 0, 0)
    with quickly(spark) if small else nullcontext():
        try:
            tables = tables_of(spark, paths, small) if where is None else chosen(spark, paths, small, where)
            with jobs_at_once() as pool:
                looking = begun(pool, tables, detectors, thresholds)
                exchanges = gathering.lean(tables)
                if not small:
                    exchanges.persist()
                traffic, adding = gathering.gather(pool, tables, exchanges, plots)
                steps: dict[Future[Any], int] = {
                    job: len(batch) for job, batch in looking.items()
                } | dict.fromkeys(adding, 1)
                done, of = 0, sum(steps.values())
                for job in as_completed(steps):
                    job.result()
                    done += steps[job]
                    on_step("looking", done, of)
                found = ended(looking)
            seen = gathering.evidence_exchanges(exchanges, found)
            present = gathering.present(exchanges, asked)
        finally:
            spark.catalog.clearCache()
    return Report(paths, traffic, found, detectors, None if where is None else str(where), seen, present)
