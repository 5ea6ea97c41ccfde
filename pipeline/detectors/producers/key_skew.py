"""One key that most records of a topic have. It needs records in the capture: `--capture-records hash`,
or `keep`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured
from klamm.pipeline.detectors.producers.hot_partitions import partition_counts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Only in captures that keep or hash records, of batches that are not blank.

    A batch tells how often its most frequent key is there, and not which it is. One key is always in one
    partition, so what most batches of that partition repeat is taken for the same key.
    """
    from pyspark.sql import functions as F

    large_enough = F.col("records") >= thresholds["batch_records"]
    keyed = tables.batches.where((F.col("side") == "request") & (F.col("keys") > 0))
    partitions = keyed.groupBy("cluster", "client_id", "topic", "partition").agg(
        F.sum("records").alias("records"),
        F.sum(F.when(large_enough, F.col("top_key_records")).otherwise(0)).alias("count"),
        *measured(),
    )
    most = F.max_by(F.struct("partition", "count", "first", "last", "evidence"), "count").alias("most")
    topics = (
        partitions.groupBy("cluster", "client_id", "topic")
        .agg(F.sum("records").alias("records"), most)
        .join(F.broadcast(partition_counts(tables)), ["cluster", "topic"], "left")
        .select("cluster", "client_id", "topic", "records", "partitions", "most.*")
    )
    enough = (
        (F.col("partitions") >= thresholds["partitions"])
        & (F.col("records") >= thresholds["records"])
        & (F.col("count") >= thresholds["share"] * F.col("records"))
    )
    what = F.format_string(
        "%d of %d records with a key (%.0f%%) have the same one, which is always in partition %d of %d",
        "count",
        "records",
        F.col("count") / F.col("records") * 100,
        "partition",
        "partitions",
    )
    return finding(topics.where(enough), what, subject=F.concat(F.lit("topic "), "topic"))


DETECTOR = Detector(
    name="key_skew",
    title="Key skew",
    severity="medium",
    settings=("partitioner.class", "partitioner"),
    advice=(
        "All records of a key go to one partition, and so to one consumer. Leave the key out where there "
        "is none, instead of a word for nothing; give a key that outgrows the others a suffix that spreads "
        "it."
    ),
    find=find,
    source="KIP-480: the partition follows from the hash of the key",
    thresholds={
        "records": Threshold(500, "records with a key", "rule of thumb: more than one burst about one thing"),
        "share": Threshold(0.5, "of them", "rule of thumb: more than all other keys together"),
        "batch_records": Threshold(
            10, "records of a batch", "smaller ones say little: of one record, its key is most"
        ),
        "partitions": Threshold(3, "partitions", "with fewer, bursts about different things look the same"),
    },
)
