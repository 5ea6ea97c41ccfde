"""A broker that takes far longer than the others for the same requests of the same client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

# APIs that a broker answers as soon as it can; Fetch, JoinGroup and SyncGroup wait for others. ALONE: the
# broker answers by itself. WRITES: the answer may wait until followers have written the records too (with
# KIP-848 also that of a heartbeat, for earlier records of its group).
ALONE = ("ListOffsets", "Metadata", "OffsetFetch", "FindCoordinator", "DescribeGroups", "DescribeConfigs")
WRITES = (
    "Produce",
    "OffsetCommit",
    "Heartbeat",
    "ConsumerGroupHeartbeat",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "TxnOffsetCommit",
    "EndTxn",
)
SAME = ("cluster", "api", "client_id")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """90th percentiles by client, API and broker against those of the other brokers; then what was slow, and
    in how many of the seconds from the first of it to the last. A broker that is slow with writes alone may
    wait for a follower: for the broker that is slow with all, if there is one.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    taken_ms = F.col("latency_ms") - F.coalesce("turn_ms", F.lit(0.0))
    prompt = (
        tables.exchanges.where(F.col("api").isin(*ALONE, *WRITES) & F.col("latency_ms").isNotNull())
        .where((F.col("broker") != "bootstrap") & ~F.col("broker").startswith("controller"))
        .select(*SAME, "broker", "capture", "connection", "exchange", "time", taken_ms.alias("taken_ms"))
    )
    measures = prompt.groupBy(*SAME, "broker").agg(
        F.count("*").alias("count"), F.percentile_approx("taken_ms", 0.9).alias("p90_ms")
    )
    pairs = F.collect_list(F.struct("p90_ms", "broker")).over(Window.partitionBy(*SAME))
    others = F.array_sort(F.filter("brokers", lambda one: one["broker"] != F.col("broker")))
    middle = F.try_element_at(others, F.greatest(F.floor((F.size(others) + 1) / 2).cast("int"), F.lit(1)))
    limit = F.greatest(
        F.col("usual_ms") * thresholds["times"],
        F.col("usual_ms") + thresholds["more_ms"],
    )
    slow = (
        measures.where(F.col("count") >= thresholds["requests"])
        .withColumn("brokers", pairs)
        .withColumn("usual_ms", middle["p90_ms"])
        .where(F.col("p90_ms") >= limit)
        .select(
            *(F.col(name).alias(f"slow_{name}") for name in (*SAME, "broker")),
            "p90_ms",
            "usual_ms",
            (F.col("usual_ms") + thresholds["more_ms"]).alias("limit_ms"),
        )
    )
    same = [F.col(name).eqNullSafe(F.col(f"slow_{name}")) for name in (*SAME, "broker")]
    late = prompt.join(F.broadcast(slow), [*same, F.col("taken_ms") >= F.col("limit_ms")])
    second = F.date_trunc("second", "time")
    by_broker = late.groupBy("cluster", "broker").agg(
        F.count("*").alias("count"),
        F.count_distinct(second).alias("seconds"),
        F.count_distinct(F.when(F.col("api").isin(*WRITES), F.coalesce("client_id", F.lit("")))).alias(
            "writers"
        ),
        F.count_if(F.col("api").isin(*ALONE)).alias("alone"),
        F.max_by(
            F.struct("api", "client_id", "p90_ms", "usual_ms"), F.col("p90_ms") / F.col("usual_ms")
        ).alias("worst"),
        *measured(),
    )
    of = ("cluster", "broker")
    spans = by_broker.select(*of, "first", "last")
    busy = (
        prompt.join(F.broadcast(spans), list(of))
        .where(F.col("time").between(F.col("first"), F.col("last")))
        .groupBy(*of)
        .agg(F.count_distinct(second).alias("all_seconds"))
    )
    lasting = (F.col("seconds") >= thresholds["seconds"]) & (
        F.col("seconds") >= thresholds["share"] * F.col("all_seconds")
    )
    most_alone = F.max("alone").over(Window.partitionBy("cluster"))
    only_writes = (F.col("writers") >= thresholds["writers"]) & (most_alone == 0)
    what = F.format_string(
        "took %.0f ms for %s of `%s` (90th percentile), the other brokers %.1f ms; %d requests took far "
        "longer than that, in %d of %d seconds",
        "worst.p90_ms",
        "worst.api",
        F.coalesce("worst.client_id", F.lit("")),
        "worst.usual_ms",
        "count",
        "seconds",
        "all_seconds",
    )
    subject = F.concat(F.lit("broker "), "broker")
    rows = (
        by_broker.join(busy, list(of))
        .where(lasting)
        .withColumn("only_writes", only_writes)
        .where((F.col("alone") > 0) | F.col("only_writes"))
    )
    return finding(rows, what, severity="high", subject=subject)


DETECTOR = Detector(
    name="slow_brokers",
    title="A broker slower than the others",
    severity="high",
    settings=("num.io.threads", "num.network.threads", "log.dirs", "num.replica.fetchers"),
    advice=(
        "Look at that broker: its disk, garbage collector pauses, CPU, network, and whether it leads more "
        "partitions than the others. RequestHandlerAvgIdlePercent near 0 wants more num.io.threads."
    ),
    find=find,
    source="Kafka's documentation of monitoring: TotalTimeMs of requests, by broker",
    thresholds={
        "requests": Threshold(30, "requests", "rule of thumb: fewer have no 90th percentile to speak of"),
        "times": Threshold(3, "times the others' 90th percentile", "rule of thumb: load makes less of it"),
        "more_ms": Threshold(50, "ms more than the others", "rule of thumb: below it nobody notices"),
        "seconds": Threshold(8, "seconds", "rule of thumb: a long pause, or a start, is over in less"),
        "share": Threshold(
            0.3,
            "of its seconds from the first to the last",
            "rule of thumb: rarer ones are pauses now and then",
        ),
        "writers": Threshold(2, "clients", "if it is writes alone: one may have large records, or a quota"),
    },
)
