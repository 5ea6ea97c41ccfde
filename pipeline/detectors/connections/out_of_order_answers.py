"""A broker that answers a request before an earlier one of the same connection: Kafka answers in the order of
requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """By broker: answers that came before the answer to an earlier request.

    The time of an answer is when the broker's bytes came, so what rules do to it later counts for nothing.
    Requests and answers that klamm made are left out. Answers that came in one read, or in one packet, have
    one time.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    came_us = F.unix_micros("time") + F.round(F.col("latency_ms") * 1000).cast("bigint")
    of_broker = (F.col("request_fate") != "made") & (F.col("response_fate") != "made")
    answers = tables.exchanges.where(F.col("awaits") & F.col("latency_ms").isNotNull() & of_broker).select(
        *("cluster", "broker", "client_id", "api", "capture", "connection", "exchange", "time"),
        came_us.alias("came_us"),
    )
    asked_before = (
        Window.partitionBy("capture", "connection")
        .orderBy("exchange")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    overtaking = answers.withColumn("latest", F.max(F.struct("came_us", "api")).over(asked_before)).where(
        F.col("came_us") < F.col("latest.came_us")
    )
    found = overtaking.groupBy("cluster", "broker").agg(
        F.count("*").alias("count"),
        F.count_distinct("capture", "connection").alias("connections"),
        F.mode(F.struct(F.col("latest.api").alias("overtaken"), "api")).alias("most"),
        F.mode("client_id").alias("client"),
        *measured(),
    )
    what = F.format_string(
        "sent %d answers before those to earlier requests, on %d connection(s), most often one to %s before "
        "one to %s; a client of these connections is `%s`",
        "count",
        "connections",
        "most.api",
        "most.overtaken",
        F.coalesce("client", F.lit("")),
    )
    enough = F.col("count") >= thresholds["answers"]
    return finding(found.where(enough), what, severity="high", subject=F.concat(F.lit("broker "), "broker"))


DETECTOR = Detector(
    name="out_of_order_answers",
    title="A broker that answers out of order",
    severity="high",
    settings=("max.in.flight.requests.per.connection",),
    advice=(
        "Kafka never does this: the server is another, or something between it and its clients changes the "
        "order. Report it to those who make or run that. Clients that match answers by correlation id "
        "(librdkafka) go on. The Java client throws CorrelationIdMismatchException and waits for the lost "
        "answers until they time out; aiokafka fails the requests. Until it is right, give producers "
        "max.in.flight.requests.per.connection=1: with one request at a time nothing can be overtaken."
    ),
    find=find,
    source=(
        "Kafka's protocol guide: on a single TCP connection, requests are processed in the order in which "
        "they are sent, and responses return in that order as well"
    ),
    thresholds={"answers": Threshold(1, "answers", "Kafka's protocol guide: none are out of order")},
)
