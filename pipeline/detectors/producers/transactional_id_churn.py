"""Producers that take another transactional id each time, so that nothing fences those before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """How many ids of a client are in use at a time, on average, against how many it had in all. Kafka
    Streams has many too, which begin together, and last.
    """
    from pyspark.sql import functions as F

    ids = (
        tables.transactions.where(F.col("transactional_id").isNotNull() & (F.col("error") == "NONE"))
        .groupBy("cluster", "client_id", "transactional_id")
        .agg(
            F.count_if(F.col("api") == "InitProducerId").alias("begun"),
            (F.unix_micros(F.max("time")) - F.unix_micros(F.min("time"))).alias("life"),
            F.min(F.struct("time", "capture", "connection", "exchange")).alias("row"),
        )
        .where(F.col("begun") > 0)
        .select("cluster", "client_id", "transactional_id", "life", "row.*")
    )
    rows = (
        ids.groupBy("cluster", "client_id")
        .agg(
            F.count("*").alias("count"),
            F.sum("life").alias("lives"),
            F.min("transactional_id").alias("one"),
            *measured(),
        )
        .withColumn("span", F.unix_micros("last") - F.unix_micros("first"))
        .where((F.col("count") >= thresholds["ids"]) & (F.col("span") >= thresholds["lasting_s"] * 1e6))
        .where(F.col("lives") <= thresholds["share"] * F.col("count") * F.col("span"))
    )
    what = F.format_string(
        "had %d transactional ids in %.0f s, as `%s`, %.1f of them in use at a time",
        "count",
        F.col("span") / 1e6,
        "one",
        F.col("lives") / F.col("span"),
    )
    return finding(rows, what)


DETECTOR = Detector(
    name="transactional_id_churn",
    title="A new transactional id each time",
    severity="medium",
    settings=("transactional.id", "transactional.id.expiration.ms"),
    advice=(
        "Give each instance one transactional.id that it has again after a restart. One that is new each "
        "time fences nobody: what a crashed instance left open blocks readers until "
        "transaction.timeout.ms, and coordinators keep each id for transactional.id.expiration.ms, seven "
        "days."
    ),
    find=find,
    source="KIP-98: the transactional id is the identity of a producer over restarts; KIP-447",
    thresholds={
        "ids": Threshold(10, "transactional ids of a client", "rule of thumb: more than restarts make"),
        "share": Threshold(
            0.25, "of its ids in use at a time", "rule of thumb: of stable ids, nearly all are"
        ),
        "lasting_s": Threshold(5, "s from the first id to the last", "rule of thumb: a start is shorter"),
    },
)
