"""Errors that keep coming and that no other detector looks at: requests of a client are refused, with the
reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from klamm.decoders.error_codes import ERRORS
from klamm.pipeline.detectors.connections import unknown_topics
from klamm.pipeline.detectors.consumers import fetch_session_thrashing
from klamm.pipeline.detectors.detector import Detector, Threshold, finding, measured
from klamm.pipeline.detectors.groups import heartbeat_gaps
from klamm.pipeline.detectors.producers import fenced_producers, large_messages, stale_leader

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

Apis = tuple[str, ...]  # none: all
DATA = ("Produce", "Fetch")

# By detector: the errors that it looks at, and in answers of which APIs.
ELSEWHERE: Mapping[str, tuple[Apis, Apis]] = {
    "authentication_failures": (
        ("SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"),
        (),
    ),
    "fenced_producers": (fenced_producers.FENCED, ()),
    "fetch_session_thrashing": (fetch_session_thrashing.REFUSED, ("Fetch",)),
    "heartbeat_gaps": (
        heartbeat_gaps.GONE,
        ("Heartbeat", "ConsumerGroupHeartbeat", "JoinGroup", "SyncGroup"),
    ),
    "large_messages": (large_messages.REFUSED, ("Produce",)),
    "offset_resets": (("OFFSET_OUT_OF_RANGE",), ("Fetch",)),
    "rebalance_storm": (("REBALANCE_IN_PROGRESS",), ()),
    "retries_and_duplicates": (("REQUEST_TIMED_OUT",), ("Produce",)),
    "stale_leader": (stale_leader.MOVED, DATA),
    "unknown_topics": (unknown_topics.UNKNOWN, (*DATA, "Metadata")),
}
# Part of an exchange in which nothing is wrong, however often.
NORMAL: tuple[tuple[Apis, Apis], ...] = (
    (("LEADER_NOT_AVAILABLE",), ("Metadata",)),  # a broker is down; the client did nothing wrong
    (("MEMBER_ID_REQUIRED",), ("JoinGroup",)),  # the first join (KIP-394)
    (("CONCURRENT_TRANSACTIONS",), ()),  # the markers of the transaction before are being written
    (("UNSUPPORTED_VERSION",), ("ApiVersions",)),  # a client newer than its broker (KIP-35)
)
# Not retriable by themselves, but over as soon as the member has joined anew.
OF_MEMBERS = ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH")
PASSING = (*(one.name for one in ERRORS if one.retriable), *OF_MEMBERS)

# The settings that an error is about. Those of WRONG_SETTING never come right by themselves.
WRONG_SETTING: Mapping[str, str] = {
    "INCONSISTENT_GROUP_PROTOCOL": "partition.assignment.strategy",
    "INVALID_CONFIG": "the settings in the request",
    "INVALID_RECORD": "cleanup.policy (a compacted topic takes no record without a key)",
    "INVALID_REPLICATION_FACTOR": "replication.factor",
    "INVALID_REQUIRED_ACKS": "acks",
    "INVALID_SESSION_TIMEOUT": "session.timeout.ms, group.max.session.timeout.ms",
    "INVALID_TIMESTAMP": "message.timestamp.after.max.ms, message.timestamp.before.max.ms",
    "INVALID_TRANSACTION_TIMEOUT": "transaction.timeout.ms, transaction.max.timeout.ms",
    "UNSUPPORTED_ASSIGNOR": "group.remote.assignor, group.consumer.assignors",
    "UNSUPPORTED_COMPRESSION_TYPE": "compression.type",
}
SETTINGS: Mapping[str, str] = {
    **WRONG_SETTING,
    "FENCED_INSTANCE_ID": "group.instance.id",
    "GROUP_MAX_SIZE_REACHED": "group.max.size",
    "NOT_ENOUGH_REPLICAS": "min.insync.replicas",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND": "min.insync.replicas",
    "UNRELEASED_INSTANCE_ID": "group.instance.id",
}
# A client whose requests of these fail does not do its work.
WORK = (
    *("Produce", "Fetch", "ShareFetch", "OffsetCommit", "TxnOffsetCommit", "InitProducerId", "EndTxn"),
    *("JoinGroup", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat"),
)
WHO = ("cluster", "client_id", "api")


def find(tables: Tables, thresholds: Mapping[str, float]) -> DataFrame:
    """By client, API and error. An error that passes, as while a leader moves, is one if it lasts: it comes
    again and again without a longer pause.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    requests = tables.exchanges.groupBy(*WHO).agg(F.count("*").alias("requests"))
    requests = requests.select(*(F.col(name).alias(f"of_{name}") for name in WHO), "requests")
    same_client = [F.col(name).eqNullSafe(F.col(f"of_{name}")) for name in WHO]
    each = (
        tables.exchanges.select(
            *WHO, "capture", "connection", "exchange", "time", "topics", "groups",
            F.explode("errors").alias("one"),
        )
        .withColumn("error", F.col("one.name"))
        .where(~_is_looked_at())
    )  # fmt: skip
    order = Window.partitionBy(*WHO, "error").orderBy("time")
    seconds = F.col("time").cast("double")
    is_new = F.coalesce(seconds - F.lag(seconds).over(order) > thresholds["pause_s"], F.lit(True))
    began = F.last(F.when(F.col("is_new"), seconds), ignorenulls=True).over(order)
    found = (
        each.withColumn("is_new", is_new)
        .withColumn("lasted_s", seconds - began)
        .groupBy(*WHO, "error")
        .agg(
            F.count("*").alias("count"),
            F.max("lasted_s").alias("lasted_s"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_set("topics")))).alias("topics"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_set("groups")))).alias("groups"),
            *measured(),
        )
        .join(requests, same_client)
    )
    is_passing = F.col("error").isin(*PASSING) & (F.col("lasted_s") < thresholds["lasting_s"])
    enough = F.col("error").isin(*WRONG_SETTING) | (F.col("count") >= thresholds["errors"])
    is_grave = F.col("api").isin(*WORK) & (F.col("count") >= thresholds["share"] * F.col("requests"))
    what = F.format_string(
        "%d of %d %s requests were answered %s%s%s%s%s",
        *("count", "requests", "api", "error"),
        _error_text(": ", {one.name: one.meaning for one in ERRORS}),
        _named("topic", "topics"),
        _named("group", "groups"),
        _error_text("; see ", SETTINGS),
    )
    severity = F.when(is_grave, "high").otherwise("medium")
    return finding(
        found.where(~is_passing & enough), what, severity=severity, subject=F.concat_ws(" ", "api", "error")
    )


def _is_looked_at() -> Column:
    """Whether another detector looks at this error of this API, or nothing is wrong."""
    from pyspark.sql import functions as F

    api = F.coalesce("api", F.lit(""))
    looked = F.lit(False)
    for errors, apis in (*ELSEWHERE.values(), *NORMAL):
        looked |= F.col("error").isin(*errors) & (api.isin(*apis) if apis else F.lit(True))
    return looked


def _error_text(before: str, texts: Mapping[str, str]) -> Column:
    """The text of the error, behind `before`; nothing for an error without one."""
    from pyspark.sql import functions as F

    entries = [F.lit(word) for pair in texts.items() for word in pair]
    return F.coalesce(F.concat(F.lit(before), F.create_map(*entries)[F.col("error")]), F.lit(""))


def _named(what: str, names: str) -> Column:
    """Up to three topics or groups named in the requests."""
    from pyspark.sql import functions as F

    first = F.array_join(F.slice(names, 1, 3), ", ")
    more = F.when(F.size(names) > 3, ", ...").otherwise("")
    return F.when(F.size(names) > 0, F.concat(F.lit(f"; {what} "), first, more)).otherwise("")


DETECTOR = Detector(
    name="unexplained_errors",
    title="Errors that no other detector explains",
    severity="high",
    settings=(),
    advice=(
        "Look at the request and its answer with the command: brokers often say more in error_message, and "
        "a setting that the sentence names is the one to change. "
        "`klamm errors NAME` says what an error means and whether clients may try again. Where they may not, "
        "let the client end, or treat it as an answer, instead of sending the same request again."
    ),
    find=find,
    source="Kafka's protocol guide: error codes, and which of them are retriable",
    thresholds={
        "errors": Threshold(
            3, "answers", "rule of thumb: a try or two may be meant; one that a setting causes is enough"
        ),
        "lasting_s": Threshold(
            10, "s", "rule of thumb, of retriable errors: a leader or coordinator moves in less"
        ),
        "pause_s": Threshold(6, "s", "the default of auto.commit.interval.ms, and a second"),
        "share": Threshold(0.5, "of these requests", "rule of thumb: the client does not do its work"),
    },
)
