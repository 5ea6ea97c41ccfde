"""Groups in which one member has many more partitions than the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding
from klamm.pipeline.detectors.generations import by_group, generations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    from pyspark.sql import functions as F

    uneven = (
        generations(tables, thresholds["lasting_s"])
        .withColumnRenamed("busiest", "client_id")
        .withColumn("fair", F.ceil(F.col("partitions") / F.col("seen")))
        .where(F.col("most") - F.col("fair") >= thresholds["excess"])
        .where(F.col("most") >= thresholds["times"] * F.col("fair"))
    )
    rows = by_group(uneven, "client_id", "most", "least", "seen", "partitions")
    what = F.format_string(
        "one member has %d of %d partitions, another %d; there are %d members",
        "most",
        "partitions",
        "least",
        "seen",
    )
    return finding(rows, what, severity="low", subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="uneven_assignment",
    title="Partitions are unevenly assigned",
    severity="low",
    settings=("partition.assignment.strategy", "group.remote.assignor"),
    advice=(
        "RangeAssignor divides topic by topic, so that the first members get what is left over of each. Use "
        "the CooperativeStickyAssignor (librdkafka: cooperative-sticky) or group.protocol=consumer; or "
        "subscribe all members to the same topics, if they are not."
    ),
    find=find,
    source="Kafka's documentation of partition.assignment.strategy; KIP-429, KIP-848",
    thresholds={
        "excess": Threshold(2, "partitions above the fair share", "one more or less is how division goes"),
        "times": Threshold(2, "times the fair share", "rule of thumb: this member has twice the work"),
        "lasting_s": Threshold(10, "s", "rule of thumb: the steps of a cooperative rebalance are shorter"),
    },
)
