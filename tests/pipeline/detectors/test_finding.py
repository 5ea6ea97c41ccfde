"""Detectors run together: what they find is sorted and capped, and one that fails leaves the others alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from klamm.pipeline.detectors.detector import Threshold, measured
from klamm.pipeline.detectors.detector import finding as as_finding
from klamm.pipeline.detectors.finding import CAP, findings
from tests.pipeline.report.reports import detector

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
AT_US = 1_767_323_045_678_901


def counted(tables: Any, thresholds: Mapping[str, float]) -> DataFrame:
    """Clients with at least `least` exchanges; grave with ten times as many."""
    rows = tables.exchanges.groupBy("cluster", "client_id").agg(F.count(F.lit(1)).alias("count"), *measured())
    many = rows.where(F.col("count") >= thresholds["least"])
    severity = F.when(F.col("count") >= 10 * thresholds["least"], "high").otherwise("low")
    return as_finding(many, F.format_string("%d of them", F.col("count")), severity=severity)


def test_findings_are_sorted_and_capped_and_failures_are_told(spark: SparkSession) -> None:
    def unplanned(tables: Any, thresholds: Mapping[str, float]) -> DataFrame:
        found: DataFrame = tables.exchanges.select("no_such_column")
        return found

    def broken(tables: Any, thresholds: Mapping[str, float]) -> DataFrame:
        return counted(tables, {"least": 1}).withColumn(
            "count", F.raise_error(F.lit("told so")).cast("bigint")
        )

    rows = [(f"client-{number:03}", 1) for number in range(CAP + 3)] + [("busy", 20), ("calm", 2)]
    each = [("kafka", name, AT, "run", 3, place) for name, count in rows for place in range(count)]
    names = (
        "cluster string, client_id string, time timestamp, capture string, connection bigint, exchange bigint"
    )
    tables: Any = SimpleNamespace(exchanges=spark.createDataFrame(each, names).persist())
    least = {"least": Threshold(2, "exchanges", "a test")}
    detectors = [
        detector("some", find=counted, thresholds=least),
        detector("unplanned", find=unplanned),
        detector("broken", find=broken),
        detector("all_of_them", find=counted, thresholds=least),
    ]
    found = findings(tables, detectors, {"all_of_them": {"least": 1}})
    assert set(found.failed) == {"unplanned", "broken"}
    assert "no_such_column" in found.failed["unplanned"]
    assert "told so" in found.failed["broken"]
    assert all("\n" not in why for why in found.failed.values())
    assert found.more == {"all_of_them": 5}
    assert len(found.found) == CAP + 2
    assert [(one.detector, one.severity, one.client_id, one.count) for one in found.found[:4]] == [
        ("all_of_them", "high", "busy", 20),
        ("some", "high", "busy", 20),
        ("all_of_them", "low", "calm", 2),
        ("all_of_them", "low", "client-000", 1),
    ]
    first = found.found[0]
    assert (first.first_us, first.last_us, first.what) == (AT_US, AT_US, "20 of them")
    assert [tuple(one) for one in first.evidence] == [(AT_US, "run", 3, 0), (AT_US, "run", 3, 19)]
