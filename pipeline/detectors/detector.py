"""The shape of a detector, and of its findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

Severity = Literal["high", "medium", "low"]


class Threshold(NamedTuple):
    """`source`: why this value: a KIP, a default of Kafka, or a rule of thumb that says so."""

    value: float
    unit: str
    source: str


CONSUMER_SESSION = Threshold(
    45_000, "ms", "default of group.consumer.session.timeout.ms (KIP-848), which clients do not get"
)


@dataclass(frozen=True, slots=True)
class Detector:
    """`find(tables, thresholds)` gives rows with what `finding` makes; `thresholds` are their values by name.

    `settings` are Kafka's own names. `advice` says what to change, in a sentence or two.
    """

    name: str  # as its file
    title: str
    severity: Severity  # at most
    settings: tuple[str, ...]
    advice: str
    find: Callable[[Tables, Mapping[str, float]], DataFrame]
    source: str  # where the behaviour is described: a KIP, Kafka's documentation
    thresholds: Mapping[str, Threshold] = field(default_factory=dict)


def measured(time: str = "time") -> list[Column]:
    """Aggregates that every finding has: when first, when last, and two exchanges to look at.

    In constant memory, whatever the number of rows. To be used in `.agg(...)` of rows with the columns
    `time`, `capture`, `connection` and `exchange`.
    """
    from pyspark.sql import functions as F

    row = F.struct(F.col(time).alias("time"), "capture", "connection", "exchange")
    return [
        F.min(time).alias("first"),
        F.max(time).alias("last"),
        F.array_distinct(F.array(F.min(row), F.max(row))).alias("evidence"),
    ]


def host() -> Column:
    """The client's address without its port, of rows with the column `client`."""
    from pyspark.sql import functions as F

    return F.regexp_replace("client", r":\d+$", "")


def finding(
    rows: DataFrame,
    what: Column,
    count: str = "count",
    severity: str | Column = "medium",
    subject: Column | None = None,
) -> DataFrame:
    """Rows with `cluster`, `client_id` (about clients) and those of `measured`, as findings."""
    from pyspark.sql import functions as F

    client = F.col("client_id") if "client_id" in rows.columns else F.lit(None).cast("string")
    return rows.select(
        (F.lit(severity) if isinstance(severity, str) else severity).alias("severity"),
        F.col("cluster"),
        client.alias("client_id"),
        (F.lit(None).cast("string") if subject is None else subject).alias("subject"),
        F.col("first"),
        F.col("last"),
        F.col(count).cast("bigint").alias("count"),
        what.alias("what"),
        F.col("evidence"),
    )
