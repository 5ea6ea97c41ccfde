"""The edges of the thresholds of detectors about consumers and groups: rows made by hand, one job for all.

A client whose id ends in `-yes` is just beyond a threshold, one in `-no` just not.
"""

import itertools
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from klamm.pipeline.detectors.consumers import (
    commit_per_record,
    consumer_lag,
    empty_fetches,
    fetch_session_thrashing,
    held_back_readers,
    offset_resets,
    poison_records,
    slow_polling,
)
from klamm.pipeline.detectors.finding import table
from klamm.pipeline.detectors.groups import heartbeat_gaps, idle_members, rebalance_storm, uneven_assignment
from klamm.pipeline.schemas import TABLES

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DETECTORS = [
    module.DETECTOR
    for module in (
        commit_per_record,
        consumer_lag,
        empty_fetches,
        fetch_session_thrashing,
        heartbeat_gaps,
        held_back_readers,
        idle_members,
        offset_resets,
        poison_records,
        rebalance_storm,
        slow_polling,
        uneven_assignment,
    )
]
COMMON = {
    "capture": "c",
    "cluster": "kafka",
    "broker": "1",
    "answered": True,
    "latency_ms": 0.0,
    "error": "NONE",
}
FETCH = {
    "is_replica": False,
    "session_error": "NONE",
    "partition": 0,
    "max_wait_ms": 500,
    "min_bytes": 1,
    "bytes": 0,
}
MEMBER = {"session_timeout_ms": 6000, "rebalance_timeout_ms": 10_000}

Rows = dict[str, list[dict[str, Any]]]


def number(name: str) -> int:
    """Of a connection."""
    return crc32(name.encode())


class Client:
    """Writes rows of its own; its group, topic and member are called as it is."""

    def __init__(self, rows: Rows, client_id: str) -> None:
        self.rows, self.client_id, self.count = rows, client_id, itertools.count()

    def says(self, name: str, at_s: float, **values: Any) -> None:
        own = {"client_id": self.client_id, "group": self.client_id, "topic": self.client_id, "partition": 0}
        own |= {
            "member_id": self.client_id,
            "connection": number(self.client_id),
            "exchange": next(self.count),
        }
        self.rows[name].append({**own, **COMMON, "time": BEGIN + timedelta(seconds=at_s), **values})

    def fetches(self, at_s: float, **values: Any) -> None:
        self.says("fetch", at_s, **{**FETCH, **values})

    def commits(self, at_s: float, offset: int, **values: Any) -> None:
        self.says("commits", at_s, api="OffsetCommit", offset=offset, **values)

    def joins(self, at_s: float, generation: int = 1, **values: Any) -> None:
        self.says("groups", at_s, api="JoinGroup", generation=generation, **{**MEMBER, **values})

    def beats(self, at_s: float, **values: Any) -> None:
        self.says("groups", at_s, api="Heartbeat", **{"generation": 1, **values})


def commits(rows: Rows) -> None:
    for name, count, gap_s, records in (
        ("commits-yes", 30, 0.999, 1),
        ("commits-seldom-no", 29, 0.999, 1),
        ("commits-slowly-no", 30, 1.0, 1),
        ("commits-two-no", 30, 0.5, 2),
    ):
        client = Client(rows, name)
        for index in range(count + 1):
            client.says("commits", index * gap_s, api="OffsetCommit", offset=index * records)


def rebalances(rows: Rows) -> None:
    for name, count, apart_s in (("storm-yes", 10, 2), ("storm-no", 9, 2), ("storm-slowly-no", 20, 7)):
        client = Client(rows, name)
        for index in range(count):
            client.joins(index * apart_s, index + 1, session_timeout_ms=45_000)


def heartbeats(rows: Rows) -> None:
    for name, count, gap_s in (("beats-yes", 3, 3.96), ("beats-twice-no", 2, 3.96), ("beats-no", 9, 3.95)):
        client = Client(rows, name)
        client.joins(0)
        for index in range(1, count + 1):
            client.beats(index * gap_s)
    lost = Client(rows, "beats-lost-no")
    lost.says("connections", 0, lost=1)
    lost.joins(0)
    for index in range(1, 4):
        lost.beats(index * 5.0)
    moved = Client(rows, "beats-moved-no")
    moved.joins(0)
    for index in range(9):
        moved.beats(index * 5.0, connection=index)


def polls(rows: Rows) -> None:
    for name, count, member_s in (("polls-yes", 2, 10), ("polls-once-no", 1, 10), ("polls-left-no", 2, 9)):
        client = Client(rows, name)
        for index in range(count):
            client.joins(index * 20)
            client.says("groups", index * 20 + member_s, api="LeaveGroup")
        client.joins(count * 20)
    for name, gaps, gap_s, records in (
        ("nearly-yes", 3, 6.0, 500),
        ("nearly-twice-no", 2, 6.0, 500),
        ("nearly-less-no", 3, 5.9, 500),
        ("nearly-buffered-no", 3, 6.0, 501),
    ):
        client = Client(rows, name)
        client.joins(0)
        for index in range(gaps + 1):
            client.fetches(index * gap_s, records=records, bytes=1000)


def empties(rows: Rows) -> None:
    for name, count, latency_ms, apart_s in (
        ("empty-yes", 100, 99.0, 0.2),
        ("empty-few-no", 99, 99.0, 0.2),
        ("empty-waits-no", 200, 100.0, 0.1),
        ("empty-seldom-no", 100, 5.0, 0.21),
        ("empty-burst-no", 500, 0.1, 0.007),
    ):
        client = Client(rows, name)
        for index in range(count):
            client.fetches(index * apart_s, topic=None, partition=None, latency_ms=latency_ms)


def sessions(rows: Rows) -> None:
    for name, opened, more, apart_s in (
        ("open-yes", 10, 30, 2.5),
        ("open-few-no", 9, 0, 1),
        ("open-used-no", 10, 31, 1),
        ("open-seldom-no", 10, 30, 2.6),
    ):
        client = Client(rows, name)
        for index in range(opened + more):
            client.fetches(index * apart_s, session_epoch=int(index >= opened), latency_ms=500.0)


def resets(rows: Rows) -> None:
    for name, count in (("range-yes", 2), ("range-no", 1)):
        client = Client(rows, name)
        for index in range(count):
            client.fetches(index, fetch_offset=100, error="OFFSET_OUT_OF_RANGE")
    for name, count, committed in (("back-yes", 5, 7), ("back-four-no", 4, 7), ("back-committed-no", 5, 3)):
        client = Client(rows, name)
        client.says("offsets", 0, api="OffsetFetch", offset=committed)
        for index in range(count):
            client.fetches(index, fetch_offset=3, next_offset=10, records=7)
            client.fetches(index + 0.5, fetch_offset=10)
        client.fetches(count, fetch_offset=3)
    for name, records in (("without-yes", 1), ("without-empty-no", 0)):
        client = Client(rows, name)
        client.fetches(0, fetch_offset=0, records=records)
        for index in range(5):
            client.says("offsets", index, api="OffsetFetch", offset=-1)


def lags(rows: Rows) -> None:
    for name, read, made in (("lag-yes", 0, 100), ("lag-less-no", 1, 100), ("lag-falls-no", 200, 100)):
        client = Client(rows, name)
        for second in range(11):
            at, end = second * read, 5000 * (read > made) + second * made
            client.fetches(second, fetch_offset=at, next_offset=at + read, high_watermark=end)


def commit_lags(rows: Rows) -> None:
    """These fetch at the end of the partition, whatever they commit."""
    for name, seconds, commits, isolation in (
        ("commit-lag-yes", 16, {0: 0}, 0),
        ("commit-lag-slow-yes", 12, {second: second for second in range(12)}, 0),
        ("commit-lag-short-no", 15, {0: 0}, 0),
        ("commit-lag-never-no", 16, {}, 0),
        ("commit-lag-each-no", 11, {second: second * 100 for second in range(11)}, 0),
        ("commit-lag-twice-no", 12, {0: 0, 5: 500, 10: 1000}, 0),
        ("commit-lag-stable-no", 16, {0: 0}, 1),
    ):
        client = Client(rows, name)
        for second in range(seconds):
            end = second * 100
            stable = 0 if isolation else end
            offsets = {"high_watermark": end, "last_stable_offset": stable, "isolation_level": isolation}
            client.fetches(
                second, fetch_offset=stable, next_offset=None if isolation else end + 100, **offsets
            )
            if second in commits:
                client.commits(second, commits[second])
    gone = Client(rows, "commit-lag-gone-no")
    gone.commits(0, 0)
    gone.fetches(1, fetch_offset=0, high_watermark=0, isolation_level=0)
    for second in range(2, 60):
        gone.says("produce", second, base_offset=second * 100, records=100)
    silent = Client(rows, "commit-lag-told-yes")  # it commits nothing, and was told what it had committed
    silent.says("offsets", 0, api="OffsetFetch", offset=0)
    for second in range(16):
        at = second * 100
        silent.fetches(second, fetch_offset=at, next_offset=at + 100, high_watermark=at, isolation_level=0)


def held_back(rows: Rows) -> None:
    for name, seconds, stable, end, isolation in (
        ("held-yes", 10, 5, 6, 1),
        ("held-soon-no", 9, 5, 6, 1),
        ("held-read-no", 10, 6, 6, 1),
        ("held-uncommitted-no", 10, 5, 6, 0),
    ):
        client = Client(rows, name)
        at = {"last_stable_offset": stable, "high_watermark": end, "isolation_level": isolation}
        client.says("produce", 0, client_id="forgetful", transactional_id="t-1", base_offset=5, records=1)
        for second in range(seconds + 1):
            client.fetches(second, fetch_offset=stable, **at)
    held_back_in_session(rows)


def held_back_in_session(rows: Rows) -> None:
    """Brokers leave partitions that have not changed out of their answers."""
    opens, goes_on = {"session_epoch": 0, "isolation_level": 1}, {"session_epoch": 1, "isolation_level": 1}
    open_at_5 = {"last_stable_offset": 5, "high_watermark": 6}
    for name, seconds in (
        ("held-quiet-yes", 10),
        ("held-quiet-soon-no", 9),
        ("held-quiet-ended-no", 20),
        ("held-quiet-ended-for-another-no", 20),
        ("held-quiet-left-no", 20),
    ):
        client = Client(rows, name)
        client.fetches(0, fetch_offset=5, **opens, **open_at_5)
        for second in range(1, seconds + 1):
            client.fetches(second, topic=None, partition=None, **goes_on)
    ended = {"last_stable_offset": 7, "high_watermark": 7}
    Client(rows, "held-quiet-ended-no").fetches(9, bytes=100, **goes_on, **ended)
    another = {"topic": "held-quiet-ended-for-another-no", "connection": 1}
    Client(rows, "held-not-no").fetches(9, fetch_offset=5, **another, **opens, **ended)
    Client(rows, "held-quiet-left-no").fetches(9, topic="another", fetch_offset=0, **opens)
    for name, asks in (("held-after-records-yes", True), ("held-works-no", False)):
        client = Client(rows, name)
        client.fetches(0, fetch_offset=0, bytes=100, **opens, **open_at_5)
        if asks:
            client.fetches(1, fetch_offset=5, **goes_on)
        client.fetches(11, topic=None, partition=None, **goes_on)


def new_groups(rows: Rows) -> None:
    for number in range(5):
        client = Client(rows, f"starts-{10_000 + number}-yes")
        own = {"topic": "starts", "group": f"group-{number}"}
        client.says("offsets", number, api="OffsetFetch", offset=-1, **own)
        client.fetches(number, fetch_offset=0, records=1, topic="starts")


def assignments(rows: Rows) -> None:
    for name, assigned, members, lasting_s in (
        ("uneven-yes", (4, 0), 2, 10),
        ("uneven-one-more-no", (3, 1, 0), 3, 60),
        ("uneven-unseen-no", (4, 0), 3, 60),
        ("uneven-meanwhile-no", (4, 0), 2, 9),
        ("idle-yes", (1, 1, 0), 3, 10),
        ("idle-not-no", (1, 1, 1), 3, 60),
        ("idle-meanwhile-no", (1, 0), 2, 9),
    ):
        for member, count in enumerate(assigned):
            client = Client(rows, name)
            own: dict[str, Any] = {"member_id": f"{name}-{member}", "connection": number(f"{name}-{member}")}
            client.joins(0, members=members if member == 0 else None, **own)
            client.says("groups", 0, api="SyncGroup", generation=1, assigned=count, **own)
            for second in range(3, lasting_s + 1):
                client.beats(second, **own)


def poison(rows: Rows) -> None:
    """Starts at the same committed offset: on how many connections, and with how many records from there."""
    for name, starts, reads, apart in (
        ("poison-yes", 5, 5, 1),
        ("poison-four-no", 4, 5, 1),
        ("poison-read-once-no", 5, 4, 1),
        ("poison-rebalances-no", 9, 9, 0),
    ):
        client = Client(rows, name)
        for index in range(starts):
            at = {"api": "OffsetFetch", "offset": 7, "connection": index * apart}
            client.says("offsets", index, **at)
        for index in range(reads):
            client.fetches(index + 0.5, fetch_offset=7, records=1, connection=100 + index * apart)
    committed = Client(rows, "poison-goes-on-no")
    for index in range(9):
        committed.says("offsets", index, api="OffsetFetch", offset=index, connection=index)
        committed.fetches(index + 0.5, fetch_offset=index, records=1, connection=100 + index)


@pytest.fixture(scope="module")
def findings(spark: SparkSession) -> dict[str, dict[str, str]]:
    """By detector and client id, what was found."""
    rows: Rows = {"fetch": [], "groups": [], "commits": [], "offsets": [], "connections": [], "produce": []}
    more = (commit_lags, held_back, new_groups, poison)
    for write in (
        commits,
        rebalances,
        heartbeats,
        polls,
        empties,
        sessions,
        resets,
        lags,
        assignments,
        *more,
    ):
        write(rows)
    frames = {}
    for name, written in rows.items():
        columns = [column.name for column in TABLES[name].columns]
        frames[name] = spark.createDataFrame(
            [tuple(row.get(column) for column in columns) for row in written], TABLES[name].ddl
        )
    tables: Any = SimpleNamespace(**frames)
    named: dict[str, dict[str, str]] = defaultdict(dict)
    for row in table(tables, DETECTORS).collect():
        named[row.detector][row.client_id] = row.what
    return named


@pytest.mark.parametrize(
    ("detector", "clients"),
    [
        ("commit_per_record", {"commits-yes"}),
        ("rebalance_storm", {"storm-yes"}),
        ("heartbeat_gaps", {"beats-yes"}),
        ("slow_polling", {"polls-yes", "nearly-yes"}),
        ("empty_fetches", {"empty-yes"}),
        ("fetch_session_thrashing", {"open-yes"}),
        ("offset_resets", {"range-yes", "back-yes", "without-yes", "starts-10000-yes"}),
        ("consumer_lag", {"lag-yes", "commit-lag-yes", "commit-lag-slow-yes", "commit-lag-told-yes"}),
        (
            "held_back_readers",
            {"held-yes", "held-quiet-yes", "held-after-records-yes", "commit-lag-stable-no"},
        ),  # the latter is held back, and does not lag
        ("uneven_assignment", {"uneven-yes"}),
        ("idle_members", {"idle-yes"}),
        ("poison_records", {"poison-yes"}),
    ],
)
def test_who_is_beyond_a_threshold_is_named_and_nobody_else(
    detector: str, clients: set[str], findings: dict[str, dict[str, str]]
) -> None:
    assert findings[detector].keys() == clients


@pytest.mark.parametrize(
    ("detector", "client", "what"),
    [
        (
            "consumer_lag",
            "commit-lag-yes",
            "commits 0 records a second of 100 that are produced: its lag grew from 0 to 1500 records in "
            "15 s, on 1 partition(s) of 1 topic(s), most of it on commit-lag-yes; nothing was committed in "
            "the last 15 s",
        ),
        (
            "held_back_readers",
            "held-yes",
            "saw nothing from offset 5 of held-yes-0 on for 10.0 s, though there are records up to offset 5: "
            "transactional id t-1 of client forgetful has not ended its transaction; 1 partition(s) in all",
        ),
        (
            "offset_resets",
            "starts-10000-yes",
            "5 times without a committed offset on 1 partition(s); it had 5 group ids, as `group-0`: a new "
            "group id at each start",
        ),
    ],
)
def test_a_finding_says_what_an_operator_has_to_know(
    detector: str, client: str, what: str, findings: dict[str, dict[str, str]]
) -> None:
    assert findings[detector][client] == what
