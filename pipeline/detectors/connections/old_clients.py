"""Clients so old that a Kafka of today refuses their requests, or that of tomorrow may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

# The first version of each API that Kafka 4.0 takes (KIP-896); JoinGroup 0 and 1 came back in 4.1.
TAKEN = {
    "Produce": 3,
    "Fetch": 4,
    "ListOffsets": 1,
    "OffsetCommit": 2,
    "OffsetFetch": 1,
    "CreateTopics": 2,
    "DeleteTopics": 1,
    "OffsetForLeaderEpoch": 2,
    "WriteTxnMarkers": 1,
    "DescribeAcls": 1,
    "CreateAcls": 1,
    "DeleteAcls": 1,
    "DescribeConfigs": 1,
    "AlterReplicaLogDirs": 1,
    "DescribeLogDirs": 1,
    "CreateDelegationToken": 1,
    "RenewDelegationToken": 1,
    "ExpireDelegationToken": 1,
    "DescribeDelegationToken": 1,
}
# Newest versions in Kafka 2.1, the baseline of KIP-896; 4.0 accepts older ones because of a few clients.
BASELINE = {"Produce": 7, "Fetch": 10}
# The releases that KIP-896 looked at. Java clients that tell their software are newer than 2.1.
RELEASES = {
    "librdkafka": (1, 8, 2),
    "confluent-kafka-python": (1, 8, 2),
    "confluent-kafka-go": (1, 8, 2),
    "confluent-kafka-dotnet": (1, 8, 2),
    "sarama": (1, 30, 1),
    "kafka-python": (2, 0, 2),
}


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Requests of old versions, and those of clients that named an old software in ApiVersions."""
    from pyspark.sql import functions as F

    rows = tables.exchanges.where(F.col("request_bytes").isNotNull()).select(
        "cluster",
        "client_id",
        "capture",
        "connection",
        "exchange",
        "time",
        F.when(_below(TAKEN) | _below(BASELINE), F.format_string("%s v%d", "api", "version")).alias(
            "request"
        ),
        F.when(_below(TAKEN), 1).alias("removed"),
        F.when(_old_release(), F.col("software")).alias("release"),
    )
    old = rows.where(F.col("request").isNotNull() | F.col("release").isNotNull())
    found = old.groupBy("cluster", "client_id").agg(
        F.count("*").alias("count"),
        F.count("removed").alias("removed"),
        F.array_join(F.array_sort(F.collect_set("request")), ", ").alias("requests"),
        F.min("release").alias("release"),
        *measured(),
    )
    enough = (F.col("removed") >= thresholds["removed"]) | (F.col("count") >= thresholds["old"])
    by_release = F.format_string("is %s, which is older than KIP-896 reckons with", "release")
    by_removed = F.format_string(
        "sent %d requests of old versions, %d of them of versions that Kafka 4.0 does not take: %s",
        "count",
        "removed",
        "requests",
    )
    by_baseline = F.format_string(
        "sent %d requests of versions older than Kafka 2.1: %s", "count", "requests"
    )
    what = (
        F.when(F.col("removed") > 0, by_removed)
        .when(F.col("requests") != "", by_baseline)
        .otherwise(by_release)
    )
    severity = F.when(F.col("removed") >= thresholds["removed"], "high").otherwise("low")
    return finding(found.where(enough), what, severity=severity)


def _below(versions: Mapping[str, int]) -> Column:
    from pyspark.sql import functions as F

    least = F.create_map(*(F.lit(each) for pair in versions.items() for each in pair))
    return F.coalesce(F.col("version") < F.try_element_at(least, F.col("api")), F.lit(False))


def _old_release() -> Column:
    """`software` is a name and a version, which may go on in letters."""
    from pyspark.sql import functions as F

    name = F.lower(F.substring_index("software", " ", 1))
    numbers = F.regexp_extract("software", r" v?(\d+)\.(\d+)\.?(\d*)", 0)
    release = F.transform(
        F.split(F.regexp_replace(numbers, r"[^\d.]", ""), r"\."),
        lambda part: F.coalesce(part.try_cast("int"), F.lit(0)),
    )
    least = F.create_map(
        *(each for key, parts in RELEASES.items() for each in (F.lit(key), F.array(*map(F.lit, parts))))
    )
    return F.coalesce((numbers != "") & (release < F.try_element_at(least, name)), F.lit(False))


DETECTOR = Detector(
    name="old_clients",
    title="Old clients",
    severity="high",
    settings=("api.version.request", "broker.version.fallback", "api_version"),
    advice=(
        "Update the client library: Java 2.1, librdkafka 1.8.2, Sarama 1.30.1, kafka-python 2.0.2 or newer. "
        "Remove settings that pin an old protocol (librdkafka: api.version.request=false, "
        "broker.version.fallback; kafka-python: api_version; Sarama: Config.Version) before brokers move to "
        "Kafka 4.0."
    ),
    find=find,
    source="KIP-896: Remove old client protocol API versions in Kafka 4.0",
    thresholds={
        "removed": Threshold(1, "requests", "KIP-896: no broker from 4.0 on answers one"),
        "old": Threshold(10, "requests", "rule of thumb: more than finding out a broker's versions takes"),
    },
)
