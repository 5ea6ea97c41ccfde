"""Members of share groups that get the same records again and again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """A record is delivered again when a member releases it, ends, or has it for too long."""
    from pyspark.sql import functions as F

    sums = [F.sum(name).alias(name) for name in ("acquired", "again", "released", "rejected")]
    rows = (
        tables.shares.groupBy("cluster", "client_id", "group")
        .agg(*sums, F.max("delivery_count").alias("delivery_count"), *measured())
        .where(F.col("again") >= thresholds["records"])
        .where(F.col("again") >= thresholds["share"] * F.col("acquired"))
    )
    what = F.format_string(
        "%d of the %d records that it got had been delivered before, up to %d times; it released %d and "
        "rejected %d",
        "again",
        "acquired",
        F.col("delivery_count") - 1,
        "released",
        "rejected",
    )
    lost = F.col("delivery_count") >= thresholds["limit"]
    severity = F.when(lost, "high").otherwise("medium")
    return finding(rows, what, "again", severity, F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="share_redelivery",
    title="Records of a share group are delivered again and again",
    severity="high",
    settings=(
        "share.acknowledgement.mode",
        "group.share.record.lock.duration.ms",
        "group.share.delivery.count.limit",
        "max.poll.records",
    ),
    advice=(
        "Accept what was done, reject what can never be done (and keep it elsewhere), and release only what "
        "another member could do at once. Kafka drops a record after group.share.delivery.count.limit "
        "deliveries, five, as if it had been rejected. Where nothing is released, processing takes longer "
        "than group.share.record.lock.duration.ms: take fewer records at a time (max.poll.records), renew "
        "the lock (KIP-1222), or lengthen it for the group."
    ),
    find=find,
    source="KIP-932: queues for Kafka; KIP-1222: renewal of acquisition locks",
    thresholds={
        "records": Threshold(50, "records delivered again", "rule of thumb: more than a restart leaves"),
        "share": Threshold(0.1, "of what it got", "rule of thumb: single failures are less"),
        "limit": Threshold(5, "deliveries", "default of group.share.delivery.count.limit"),
    },
)
