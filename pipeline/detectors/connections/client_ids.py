"""Clients that nobody named: their id is missing, or a library's default. The Java consumer's default has its
group in it, so with a new group id at each start there is a new client id each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, host, measured
from klamm.pipeline.detectors.generated_names import shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

# The default client ids of libraries.
DEFAULTS = {
    r"rdkafka": "librdkafka",
    r"kafka-python-(\d[\w.]*|producer-\d+|consumer-\d+)": "kafka-python",
    r"aiokafka-(\d[\w.]*|producer-\d+)": "aiokafka",
    r"(producer|adminclient)-\d+|consumer-(.+-)?\d+": "the Java client",
    r"sarama": "Sarama",
    r"kgo": "franz-go",
    r"kafkajs": "KafkaJS",
    r"ruby-kafka": "ruby-kafka",
}


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    from pyspark.sql import functions as F

    of = F.lit(None).cast("string")
    for pattern, library in DEFAULTS.items():
        of = F.when(F.col("client_id").rlike(f"^({pattern})$"), library).otherwise(of)
    missing = F.coalesce(F.col("client_id") == "", F.lit(True))
    rows = tables.connections.where(F.col("requests") > 0).select(
        "cluster",
        "client_id",
        "capture",
        "connection",
        F.lit(0).cast("bigint").alias("exchange"),
        "first",
        "requests",
        host().alias("host"),
        F.when(~missing, of).alias("library"),
        missing.alias("missing"),
    )
    found = (
        rows.where(F.col("missing") | F.col("library").isNotNull())
        .groupBy("cluster", shape(F.col("client_id")).alias("shape"), "library")
        .agg(
            F.min("client_id").alias("client_id"),
            F.count_distinct("client_id").alias("ids"),
            F.count("*").alias("count"),
            F.sum("requests").alias("requests"),
            F.count_distinct("host").alias("hosts"),
            *measured("first"),
        )
    )
    named = F.when(F.col("library").isNull(), "have no client id").otherwise(
        F.format_string("go by `%s`, the default of %s", "client_id", "library")
    )
    anew = F.format_string(
        "%d client ids like `%s`, in %d connections from %d host(s), are the default of %s for as many "
        "group ids: a new group id at each start",
        *("ids", "shape", "count", "hosts", "library"),
    )
    what = F.when(F.col("ids") >= thresholds["starts"], anew).otherwise(
        F.format_string("%d connections from %d host(s) %s", "count", "hosts", named)
    )
    return finding(found.where(F.col("requests") >= thresholds["requests"]), what, severity="low")


DETECTOR = Detector(
    name="client_ids",
    title="Clients without a name",
    severity="low",
    settings=("client.id", "group.id"),
    advice=(
        "Set client.id to the name of the service: quotas, the brokers' logs and metrics, and these findings "
        "tell clients apart by it. Where each start has another group id, choose one group.id and keep it: "
        "else each start begins without committed offsets, and brokers keep those of all these groups for a "
        "week."
    ),
    find=find,
    source="Kafka's documentation of client.id: a logical application name beyond ip and port",
    thresholds={
        "requests": Threshold(10, "requests", "rule of thumb: more than a health check or a look by hand"),
        "starts": Threshold(
            3, "client ids that differ in a generated part", "rule of thumb: twice may be chance"
        ),
    },
)
