"""The lag of consumer groups by partition: how far their commits are behind the end that they may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

PARTITION = ("cluster", "topic", "partition")
OF_GROUP = (*PARTITION, "group")
EXCHANGE = ("capture", "connection", "exchange")
READ_COMMITTED = 1


def samples(tables: Tables) -> DataFrame:
    """At most one a second of each partition that a group reads, from its first known commit on, as long as
    the group gives signs of life. Columns: OF_GROUP, `time`, `at` (committed), `end`, `lag`, and of the last
    commit `row` (the exchange) and `client_id`.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    committed = positions(tables)
    ends = _ends(tables).join(_read(tables, committed), [*PARTITION, "committed_only"])
    events = committed.unionByName(ends.where("time <= until"), allowMissingColumns=True)
    in_turn = Window.partitionBy(*OF_GROUP).orderBy("time")
    so_far = in_turn.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        events.select(
            *(*OF_GROUP, "time", F.col("end").isNotNull().alias("is_end")),
            F.max("end").over(so_far).alias("end"),
            *(F.last(name, ignorenulls=True).over(so_far).alias(name) for name in ("at", "row", "client_id")),
        )
        .where("is_end AND at IS NOT NULL")
        .withColumn("lag", F.greatest(F.col("end") - F.col("at"), F.lit(0)))
    )


def positions(tables: Tables) -> DataFrame:
    """The positions of groups (`at`), as they commit them or get them when they begin."""
    from pyspark.sql import functions as F

    fetched = tables.offsets.where((F.col("api") == "OffsetFetch") & F.col("group").isNotNull())
    columns = (*OF_GROUP, "client_id", "time", *EXCHANGE, "offset", "error")
    return (
        tables.commits.select(*columns)
        .unionAll(fetched.select(*columns))
        .where("error = 'NONE' AND offset >= 0")
        .select(
            *(*OF_GROUP, "client_id", "time"),
            F.col("offset").alias("at"),
            F.struct("time", *EXCHANGE).alias("row"),
        )
    )


def readable() -> Column:
    """Of rows of `fetch`: the end of the records that the client may read."""
    from pyspark.sql import functions as F

    stable = _committed_only() & (F.col("last_stable_offset") >= 0)
    return F.when(stable, F.col("last_stable_offset")).otherwise(F.col("high_watermark"))


def _read(tables: Tables, committed: DataFrame) -> DataFrame:
    """For each partition that a group reads: as what, and until when the group gave a sign of life."""
    from pyspark.sql import functions as F

    readers = (
        tables.fetch.where(~F.col("is_replica") & F.col("topic").isNotNull())
        .groupBy(*PARTITION, "client_id")
        .agg(F.max(_committed_only()).alias("committed_only"), F.max("time").alias("fetched"))
    )
    alive = tables.groups.groupBy("cluster", "group").agg(F.max("time").alias("alive"))
    of_client = (
        "cluster",
        "group",
        "client_id",
    )  # a transaction is committed by a producer, and read by a member
    clients = committed.select(*of_client).unionAll(tables.groups.select(*of_client)).distinct()
    return (
        committed.select(*OF_GROUP)
        .distinct()
        .join(clients, ["cluster", "group"])
        .join(readers, [*PARTITION, "client_id"])
        .groupBy(*OF_GROUP)
        .agg(F.max("committed_only").alias("committed_only"), F.max("fetched").alias("fetched"))
        .join(alive, ["cluster", "group"], "left")
        .withColumn("until", F.greatest("fetched", "alive"))
        .drop("fetched", "alive")
    )


def _ends(tables: Tables) -> DataFrame:
    """The ends of partitions, once a second: for readers of committed records, and for all others."""
    from pyspark.sql import functions as F

    fetched = tables.fetch.where(~F.col("is_replica") & (F.col("high_watermark") >= 0)).select(
        *(*PARTITION, "time", readable().alias("end"), _committed_only().alias("committed_only"))
    )
    produced = tables.produce.where("error = 'NONE' AND base_offset >= 0").select(
        *(*PARTITION, "time", F.col("base_offset") + F.col("records"), F.lit(False))
    )
    second = F.date_trunc("second", "time").alias("second")
    return (
        fetched.unionAll(produced)
        .groupBy(*PARTITION, "committed_only", second)
        .agg(F.max("end").alias("end"), F.max("time").alias("time"))
        .drop("second")
    )


def _committed_only() -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.col("isolation_level") == READ_COMMITTED, F.lit(False))
