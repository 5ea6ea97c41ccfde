"""Topics whose partitions have fewer copies than the cluster could keep, or than they should have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

PARTITION = ("cluster", "topic", "partition")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """As answers to Metadata have it, by topic. A stretch of time ends with an answer that has all in sync,
    and where no answer comes for long: clients ask when a broker goes, and so one sees each step of a rolling
    restart, and nothing between them. A cluster where nothing has a second replica may have one broker:
    nothing is said about it.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    told = F.col("partition").isNotNull() & (F.col("replicas") > 0)
    in_turn = Window.partitionBy(*PARTITION).orderBy("time", "connection", "exchange")
    short = F.col("isr") < F.col("replicas")
    unseen_s = (F.unix_micros("time") - F.unix_micros(F.lag("time").over(in_turn))) / 1e6
    begins = ~short | (unseen_s > thresholds["unseen_s"])
    since = F.min(F.when(short, F.col("time"))).over(Window.partitionBy(*PARTITION, "stretch"))
    alone = F.col("replicas") <= thresholds["alone"]
    lasting = short & (F.unix_micros("time") - F.unix_micros(since) >= thresholds["lasting_s"] * 1e6)
    several = F.max("replicas").over(Window.partitionBy("cluster"))
    rows = (
        tables.metadata.where(told)
        .withColumn("begins", begins)
        .withColumn("stretch", F.count_if("begins").over(in_turn))
        .withColumns({"alone": alone, "lasting": lasting, "several": several})
        .where((F.col("several") > thresholds["alone"]) & (F.col("alone") | F.col("lasting")))
        .groupBy("cluster", "topic")
        .agg(
            F.count_distinct("partition").alias("count"),
            F.bool_or("lasting").alias("lasting"),
            F.min("isr").alias("isr"),
            F.max("replicas").alias("replicas"),
            *measured(),
        )
    )
    in_sync = F.format_string(
        "%d partition(s) had down to %d of %d replicas in sync, for %.0f s and longer",
        "count",
        "isr",
        "replicas",
        F.lit(float(thresholds["lasting_s"])),
    )
    single = F.format_string(
        "%d partition(s) have one replica: nobody can read or write them while its broker is down", "count"
    )
    what = F.when(F.col("lasting"), in_sync).otherwise(single)
    severity = F.when(F.col("lasting"), "high").otherwise("medium")
    return finding(rows, what, severity=severity, subject=F.concat(F.lit("topic "), "topic"))


DETECTOR = Detector(
    name="few_replicas",
    title="Too few replicas",
    severity="high",
    settings=("default.replication.factor", "min.insync.replicas", "replica.lag.time.max.ms"),
    advice=(
        "Give topics three replicas and min.insync.replicas=2: kafka-reassign-partitions.sh adds replicas to "
        "those that are there, default.replication.factor decides about new ones. Where replicas are out of "
        "sync, look at the brokers that should have them: one that is down, a full or slow disk, a network "
        "that cannot keep up."
    ),
    find=find,
    source="Kafka's documentation of replication and of min.insync.replicas",
    thresholds={
        "alone": Threshold(1, "replica", "a record with one copy is lost with one disk"),
        "lasting_s": Threshold(300, "s", "rule of thumb: a broker that restarts is in sync again sooner"),
        "unseen_s": Threshold(30, "s between two answers", "rule of thumb: a broker restarts in less"),
    },
)
