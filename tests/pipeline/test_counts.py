"""The counts of the tables equal those of the clients and brokers themselves."""

from collections import Counter, defaultdict
from typing import Any

import pytest
from pyspark.sql import functions as F

from klamm.pipeline.tables import Tables
from tests.pipeline.ground import Played
from tests.pipeline.healthy_clients.work import CLICKS, ORDERS, PAYMENTS, QUIET, SHIPMENTS

pytestmark = pytest.mark.brokers

PLAIN = (ORDERS, PAYMENTS, CLICKS, QUIET, SHIPMENTS)  # without transactions: all that is in them was produced
PARTITION = "concat_ws('-', topic, partition)"


def of_topics(counts: dict[str, int], *topics: str) -> dict[str, int]:
    """The counts above 0 of partitions of these topics."""
    return {name: count for name, count in counts.items() if count and name.rpartition("-")[0] in topics}


def test_records_and_bytes_produced_are_what_producers_and_brokers_count(
    played: Played, tables: Tables
) -> None:
    rows = (
        tables.produce.where(F.col("topic").isin(*PLAIN) & (F.col("error") == "NONE"))
        .groupBy(F.expr(PARTITION))
        .agg(F.sum("records"), F.sum("bytes"))
        .collect()
    )
    assert {name: records for name, records, _ in rows} == of_topics(played.facts.end_offsets, *PLAIN)
    assert {name: size for name, _, size in rows} == of_topics(played.facts.log_bytes, *PLAIN)
    acknowledged = Counter[str]()
    for client in played.reports.values():
        if isinstance(acknowledged_counts := client.get("acknowledged"), dict):
            acknowledged.update(acknowledged_counts)
    of_python = {name: count for name, count, _ in rows if not name.startswith(SHIPMENTS)}
    assert of_python == acknowledged
    of_java = sum(count for name, count, _ in rows if name.startswith(SHIPMENTS))
    assert of_java == played.reports["healthy-java-producer"]["acknowledged"] > 0


def test_requests_and_their_bytes_are_what_librdkafka_counts(played: Played, tables: Tables) -> None:
    who = "healthy-librdkafka-producer"
    rows = (
        tables.exchanges.where((F.col("client_id") == who) & (F.col("broker") != "bootstrap"))
        .groupBy("broker")
        .agg(
            F.count("request_bytes").alias("requests"),
            F.sum("request_bytes").alias("request_bytes"),
            F.count("response_bytes").alias("responses"),
            F.sum("response_bytes").alias("response_bytes"),
        )
        .collect()
    )
    assert {row["broker"]: row.asDict() for row in rows} == {
        broker: {"broker": broker, **reported} for broker, reported in played.reports[who]["brokers"].items()
    }


def test_records_consumed_are_what_the_consumer_counts(played: Played, tables: Tables) -> None:
    who = "healthy-librdkafka-reader"
    rows = (
        tables.fetch.where(F.col("client_id") == who)
        .groupBy(F.expr(PARTITION))
        .agg(F.sum("records"))
        .collect()
    )
    consumed = played.reports[who]["consumed"]
    assert {name: count for name, count in rows if count} == consumed
    assert consumed == of_topics(played.facts.end_offsets, ORDERS)


def test_offsets_committed_are_what_the_coordinator_has(played: Played, tables: Tables) -> None:
    rows = (
        tables.commits.where(F.col("group").startswith("healthy-") & (F.col("error") == "NONE"))
        .groupBy("group", F.expr(PARTITION))
        .agg(F.max_by("offset", "time"))
        .collect()
    )
    committed: dict[str, dict[str, int]] = defaultdict(dict)
    for group, partition, offset in rows:
        committed[group][partition] = offset
    assert committed == {group: offsets for group, offsets in played.facts.committed.items() if offsets}
    assert len(committed) > 4


def distinct(tables: Tables, api: str, column: str) -> dict[str, set[Any]]:
    """Values that answers without an error gave, by group."""
    rows = (
        tables.groups.where(
            (F.col("api") == api) & (F.col("error") == "NONE") & F.col("group").startswith("healthy-")
        )
        .groupBy("group")
        .agg(F.collect_set(column))
        .collect()
    )
    return {group: set(values) for group, values in rows}


def test_rebalances_are_those_of_the_coordinator(played: Played, tables: Tables) -> None:
    generations = distinct(tables, "JoinGroup", "generation")
    assert {group: set(map(str, found)) for group, found in generations.items()} == played.facts.generations
    assert max(map(len, generations.values())) > 1


def test_members_and_epochs_of_consumer_groups_are_those_of_the_coordinator(
    played: Played, tables: Tables
) -> None:
    assert distinct(tables, "ConsumerGroupHeartbeat", "member_id") == played.facts.members
    for group, epochs in distinct(tables, "ConsumerGroupHeartbeat", "generation").items():
        assert {str(epoch) for epoch in epochs if epoch > 0} <= played.facts.epochs[group]
