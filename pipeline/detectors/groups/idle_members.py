"""Groups with more members than partitions, so that some have nothing to do."""

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

    idle = generations(tables, thresholds["lasting_s"]).where(
        F.col("seen") - F.col("partitions") >= thresholds["idle"]
    )
    rows = by_group(idle.withColumnRenamed("idlest", "client_id"), "client_id", "seen", "partitions")
    what = F.format_string(
        "%d members share %d partition(s): at least %d of them have none",
        "seen",
        "partitions",
        F.col("seen") - F.col("partitions"),
    )
    return finding(rows, what, severity="low", subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="idle_members",
    title="Members without partitions",
    severity="low",
    settings=("group.instance.id", "num.partitions"),
    advice=(
        "A partition is read by one member of a group: run as many members as there are partitions, or give "
        "the topic more partitions (records of a key then move to others). Members that wait to take over "
        "need not be members: a new one gets its partitions within seconds. A share group (KIP-932) lets "
        "more members than partitions work."
    ),
    find=find,
    source="Kafka's documentation of consumer groups; KIP-932: share groups",
    thresholds={
        "idle": Threshold(1, "members without partitions", "a partition is never shared"),
        "lasting_s": Threshold(10, "s", "rule of thumb: the steps of a cooperative rebalance are shorter"),
    },
)
