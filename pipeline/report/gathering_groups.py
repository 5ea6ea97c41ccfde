"""Consumer groups for a report, summed up by Spark: members, assignments, rebalances and lag over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from klamm.pipeline.tables import lag

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from klamm.pipeline.tables import Tables

GROUPS = 40  # at most: the groups with the most exchanges
MEMBERS = 12  # of a group, those seen last
PARTITIONS = 24  # of a member, by name
TOPICS = 12  # of a member, by name
REBALANCES = 500  # of a group, with their time
JOINS = ("JoinGroup", "ConsumerGroupHeartbeat")
Protocol = Literal["classic", "consumer"]
Key = tuple[str, str]  # cluster, group


class Member(NamedTuple):
    """`assigned`: how many partitions it was given last, None where that was not seen; `partitions` names the
    first PARTITIONS of them. `topics`: the first TOPICS that it subscribed to last, as far as they were told.
    """

    client_id: str | None
    member_id: str
    first_us: int
    last_us: int
    assigned: int | None
    partitions: tuple[str, ...]
    topics: tuple[str, ...] = ()


class ConsumerGroup(NamedTuple):
    """`rebalances`: when each generation or epoch was first seen. `lag`: records from each of these times on,
    of all partitions together; empty where no commit was seen. `came`: members in all the time.
    """

    cluster: str
    group: str
    protocol: Protocol
    client_ids: tuple[str, ...]
    came: int
    rebalances: tuple[int, ...]
    lag: tuple[tuple[int, int], ...]
    members: tuple[Member, ...]


def gather_groups(tables: Tables, step_us: int, found: list[ConsumerGroup]) -> None:
    """Add the groups to `found`, by cluster and name. The lag is that at the end of each step."""
    from pyspark.sql import functions as F

    rows = tables.groups.where(F.col("group").isNotNull() & (F.col("group") != ""))
    groups = _groups(rows)
    if not groups:
        return
    wanted = F.struct("cluster", "group").isin(*(F.struct(F.lit(one), F.lit(other)) for one, other in groups))
    members = _members(rows.where(wanted))
    behind = _lag(lag.samples(tables).where(wanted), step_us)
    for key, (protocol, client_ids, came, rebalances) in groups.items():
        found.append(
            ConsumerGroup(
                *(*key, protocol, client_ids, came, rebalances),
                tuple(behind.get(key, ())),
                tuple(members.get(key, ())),
            )
        )
    found.sort()


def _groups(rows: DataFrame) -> dict[Key, tuple[Protocol, tuple[str, ...], int, tuple[int, ...]]]:
    from pyspark.sql import functions as F

    is_new = F.col("api").isin(*JOINS) & (F.col("error") == "NONE") & (F.col("generation") > 0)
    member = F.when(F.col("member_id") != "", F.col("member_id"))
    by_generation = rows.groupBy(
        "cluster", "group", F.when(is_new, F.col("generation")).alias("generation")
    ).agg(
        F.count(F.lit(1)).alias("count"),
        F.min("time").alias("began"),
        F.max(F.col("api") == "ConsumerGroupHeartbeat").alias("is_consumer"),
        F.collect_set("client_id").alias("client_ids"),
        F.collect_set(member).alias("members"),
    )
    began = F.when(F.col("generation").isNotNull(), F.unix_micros("began"))
    by_group = by_generation.groupBy("cluster", "group").agg(
        F.max("is_consumer"),
        F.array_sort(F.array_distinct(F.flatten(F.collect_list("client_ids")))),
        F.size(F.array_distinct(F.flatten(F.collect_list("members")))),
        F.slice(F.array_sort(F.collect_list(began)), 1, REBALANCES),
        F.sum("count").alias("count"),
    )
    top = by_group.orderBy(F.desc("count"), "cluster", "group").limit(GROUPS)
    return {
        (cluster, group): ("consumer" if is_consumer else "classic", tuple(ids), came, tuple(rebalances))
        for cluster, group, is_consumer, ids, came, rebalances, _ in top.collect()
    }


def _members(rows: DataFrame) -> dict[Key, list[Member]]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    at = F.struct("time", "exchange")
    assigned, subscribed = (F.when(F.col(name).isNotNull(), at) for name in ("assignment", "subscribed"))
    latest = Window.partitionBy("cluster", "group").orderBy(F.desc("last"), "member_id")
    each = (
        rows.where("member_id != ''")
        .groupBy("cluster", "group", "member_id")
        .agg(
            F.max_by("client_id", "time").alias("client_id"),
            F.min("time").alias("first"),
            F.max("time").alias("last"),
            F.max_by("assignment", assigned).alias("assignment"),
            F.max_by("subscribed", subscribed).alias("subscribed"),
        )
        .withColumn("place", F.row_number().over(latest))
        .where(F.col("place") <= MEMBERS)
    )
    columns = each.orderBy("cluster", "group", "client_id", "first").select(
        *("cluster", "group", "client_id", "member_id"),
        F.unix_micros("first"),
        F.unix_micros("last"),
        F.when(F.col("assignment").isNotNull(), F.size("assignment")),
        _first("assignment", PARTITIONS),
        _first("subscribed", TOPICS),
    )
    found: dict[Key, list[Member]] = {}
    for cluster, group, *values, partitions, topics in columns.collect():
        member = Member(*[*values, tuple(partitions), tuple(topics)])
        found.setdefault((cluster, group), []).append(member)
    return found


def _first(names: str, count: int) -> Column:
    """The first of a column of arrays, in order; none where it is null."""
    from pyspark.sql import functions as F

    return F.slice(F.array_sort(F.coalesce(names, F.array().cast("array<string>"))), 1, count)


def _lag(samples: DataFrame, step_us: int) -> dict[Key, list[tuple[int, int]]]:
    """A partition has its lag until something else is known of it: the sum is one of changes."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    start = (F.floor(F.unix_micros("time") / step_us) * step_us).alias("start")
    before = F.lag("lag", 1, 0).over(Window.partitionBy(*lag.OF_GROUP).orderBy("start"))
    changes = (
        samples.groupBy(*lag.OF_GROUP, start)
        .agg(F.max_by("lag", "time").alias("lag"))
        .withColumn("change", F.col("lag") - before)
        .groupBy("cluster", "group", "start")
        .agg(F.sum("change").alias("change"))
        .orderBy("cluster", "group", "start")
    )
    found: dict[Key, list[tuple[int, int]]] = {}
    for cluster, group, at, change in changes.collect():
        series = found.setdefault((cluster, group), [])
        series.append((at, change + (series[-1][1] if series else 0)))
    return found
