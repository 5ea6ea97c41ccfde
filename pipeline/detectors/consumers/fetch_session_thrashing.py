"""Fetch sessions that are opened anew again and again, and so spare nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import Tables

REFUSED = (
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "FETCH_SESSION_TOPIC_ID_ERROR",
    "INCONSISTENT_TOPIC_ID",
)


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """Of requests that open or go on with a session; those of clients without sessions have epoch -1."""
    from pyspark.sql import functions as F

    requests = (
        tables.fetch.where(~F.col("is_replica") & (F.col("session_epoch") >= 0))
        .groupBy("cluster", "client_id", "capture", "connection", "exchange")
        .agg(
            F.min("time").alias("time"),
            F.max("session_epoch").alias("session_epoch"),
            F.max("session_error").alias("session_error"),
        )
    )
    rows = (
        requests.groupBy("cluster", "client_id")
        .agg(
            F.count_if(F.col("session_epoch") == 0).alias("count"),
            F.count_if(F.col("session_error").isin(*REFUSED)).alias("refused"),
            F.count(F.lit(1)).alias("fetches"),
            ((F.max(F.unix_micros("time")) - F.min(F.unix_micros("time"))) / 1e6).alias("seconds"),
            *measured(),
        )
        .where(F.col("count") >= thresholds["count"])
        .where(F.col("count") >= thresholds["share"] * F.col("fetches"))
        .where(F.col("count") >= thresholds["a_minute"] * F.col("seconds") / 60)
    )
    sentence = "%d fetch sessions opened for %d fetches; %d fetches failed with an error of their session"
    return finding(rows, F.format_string(sentence, "count", "fetches", "refused"))


DETECTOR = Detector(
    name="fetch_session_thrashing",
    title="Fetch sessions are opened anew again and again",
    severity="medium",
    settings=("max.incremental.fetch.session.cache.slots",),
    advice=(
        "Keep a consumer open instead of opening one for each read. Where consumers stay open and the "
        "brokers' cache of sessions is full (kafka.server:type=FetchSessionCache), raise "
        "max.incremental.fetch.session.cache.slots. A client that opens sessions and never goes on with one "
        "should be updated, or ask for none."
    ),
    find=find,
    source="KIP-227: a session spares naming all partitions in each request, if there is a second request",
    thresholds={
        "count": Threshold(10, "sessions opened", "rule of thumb: restarts of brokers cost one for each"),
        "a_minute": Threshold(6, "sessions opened a minute", "rule of thumb: a job once a minute may do so"),
        "share": Threshold(
            0.25, "of the fetches", "rule of thumb: a session of fewer than four fetches spares nothing"
        ),
    },
)
