"""Members that stay give up all of their partitions each time another one comes or goes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


# of Java, librdkafka, sarama and Python; the last one is that of kafkajs. `stream` of Kafka Streams is not.
EAGER = ("range", "roundrobin", "sticky", "RoundRobinAssigner")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """The coordinator takes an assignor that all members offer. A member is eager if it offers an eager one:
    by KIP-429 it then revokes all before it joins. The finding is about the member that joined again most
    often.
    """
    from pyspark.sql import functions as F

    joins = tables.groups.where(
        (F.col("api") == "JoinGroup")
        & (F.col("error") == "NONE")
        & F.col("instance_id").isNull()
        & F.arrays_overlap("protocols", F.lit(list(EAGER)))
    )
    members = (
        joins.groupBy("cluster", "group", "client_id", "member_id")
        .agg(
            (F.count_distinct("generation") - 1).alias("count"),
            F.max("protocols").alias("protocols"),
            *measured(),
        )
        .where(F.col("count") >= thresholds["rebalances"])
    )
    rows = (
        members.groupBy("cluster", "group")
        .agg(F.max(F.struct("count", "client_id", "protocols", "first", "last", "evidence")).alias("most"))
        .select("cluster", "group", "most.*")
    )
    what = F.format_string(
        "a member gave up all of its partitions for %d rebalances (assignors: %s)",
        "count",
        F.array_join("protocols", ", "),
    )
    return finding(rows, what, severity="low", subject=F.concat(F.lit("group "), "group"))


DETECTOR = Detector(
    name="eager_rebalancing",
    title="All members stop for each rebalance",
    severity="low",
    settings=("partition.assignment.strategy", "group.protocol", "group.instance.id"),
    advice=(
        "Set partition.assignment.strategy=cooperative-sticky (Java: CooperativeStickyAssignor alone, in two "
        "rolling restarts; franz-go has it unless told, kafka-python 3 has it too, kafkajs and aiokafka do "
        "not), or group.protocol=consumer (KIP-848): members keep the partitions that stay theirs, and go on "
        "reading. A group.instance.id spares the restart of a member both of its rebalances."
    ),
    find=find,
    source="KIP-429: incremental cooperative rebalancing; KIP-345: static membership; KIP-848",
    thresholds={
        "rebalances": Threshold(
            5,
            "rebalances of a member that stays",
            "rule of thumb: a group of five that starts member by member has four",
        ),
    },
)
