"""Consumers that make up another group each time, so that none goes on where the one before ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding
from klamm.pipeline.detectors.lives import LASTING, SHARE, in_turn, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

JOINS = ("JoinGroup", "ConsumerGroupHeartbeat")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """How many groups of a client are in use at a time, on average, against how many it had in all. A group
    for each instance, of a service that wants all records everywhere, lasts as long as the instance.
    """
    from pyspark.sql import functions as F

    done = tables.groups.where((F.col("group") != "") & (F.col("error") == "NONE"))
    rows = in_turn(done, "group", F.col("api").isin(*JOINS), thresholds)
    return finding(rows, told("groups"))


DETECTOR = Detector(
    name="group_id_churn",
    title="A new group each time",
    severity="medium",
    settings=("group.id", "auto.offset.reset", "offsets.retention.minutes"),
    advice=(
        "Give the consumer one group.id that it has again after a restart. A group that is new each time "
        "has no committed offset: with auto.offset.reset=latest what came in between is never read, with "
        "earliest all is read again; and coordinators keep each group for offsets.retention.minutes, seven "
        "days. A tool that wants no group takes its partitions with assign() and commits nothing."
    ),
    find=find,
    source="Kafka's documentation of group.id, auto.offset.reset and offsets.retention.minutes; KIP-211",
    thresholds={
        "ids": Threshold(10, "groups of a client", "rule of thumb: more than restarts make"),
        "share": SHARE,
        "lasting_s": LASTING,
    },
)
