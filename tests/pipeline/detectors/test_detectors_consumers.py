"""Detectors of consumers and groups on rows at their thresholds and just below; each case is a client of its
own, whose id ends in `+` or `-`.
"""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from klamm.pipeline.detectors.finding import table
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.schemas import TABLES

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
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
STARTS = [f"starts-{10_000 + number} +" for number in range(5)]  # one finding, of the first
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
        self.says("groups", at_s, **{"api": "Heartbeat", "generation": 1, **values})


def commit_per_record(rows: Rows) -> None:
    for name, count, gap_s, records in (
        ("commits +", 30, 0.999, 1),
        ("commits-seldom -", 29, 0.999, 1),
        ("commits-slowly -", 30, 1.0, 1),
        ("commits-two -", 30, 0.5, 2),
    ):
        client = Client(rows, name)
        for index in range(count + 1):
            client.says("commits", index * gap_s, api="OffsetCommit", offset=index * records)


def rebalance_storm(rows: Rows) -> None:
    for name, count, apart_s in (("storm +", 10, 2), ("storm -", 9, 2), ("storm-slowly -", 20, 7)):
        client = Client(rows, name)
        for index in range(count):
            client.joins(index * apart_s, index + 1, session_timeout_ms=45_000)


def heartbeat_gaps(rows: Rows) -> None:
    for name, count, gap_s in (("beats +", 3, 3.96), ("beats-twice -", 2, 3.96), ("beats -", 9, 3.95)):
        client = Client(rows, name)
        client.joins(0)
        for index in range(1, count + 1):
            client.beats(index * gap_s)
    lost = Client(rows, "beats-lost -")
    lost.says("connections", 0, lost=1)
    lost.joins(0)
    for index in range(1, 4):
        lost.beats(index * 5.0)
    moved = Client(rows, "beats-moved -")
    moved.joins(0)
    for index in range(9):
        moved.beats(index * 5.0, connection=index)


def slow_polling(rows: Rows) -> None:
    for name, count, member_s in (("polls +", 2, 10), ("polls-once -", 1, 10), ("polls-left -", 2, 9)):
        client = Client(rows, name)
        for index in range(count):
            client.joins(index * 20)
            client.says("groups", index * 20 + member_s, api="LeaveGroup")
        client.joins(count * 20)
    for name, gaps, gap_s, records in (
        ("nearly +", 3, 6.0, 500),
        ("nearly-twice -", 2, 6.0, 500),
        ("nearly-less -", 3, 5.9, 500),
        ("nearly-buffered -", 3, 6.0, 501),
    ):
        client = Client(rows, name)
        client.joins(0)
        for index in range(gaps + 1):
            client.fetches(index * gap_s, records=records, bytes=1000)


def empty_fetches(rows: Rows) -> None:
    for name, count, latency_ms, apart_s in (
        ("empty +", 100, 99.0, 0.2),
        ("empty-few -", 99, 99.0, 0.2),
        ("empty-waits -", 200, 100.0, 0.1),
        ("empty-seldom -", 100, 5.0, 0.21),
        ("empty-burst -", 500, 0.1, 0.007),
    ):
        client = Client(rows, name)
        for index in range(count):
            client.fetches(index * apart_s, topic=None, partition=None, latency_ms=latency_ms)


def fetch_session_thrashing(rows: Rows) -> None:
    for name, opened, more, apart_s in (
        ("open +", 10, 30, 2.5),
        ("open-few -", 9, 0, 1),
        ("open-used -", 10, 31, 1),
        ("open-seldom -", 10, 30, 2.6),
    ):
        client = Client(rows, name)
        for index in range(opened + more):
            client.fetches(index * apart_s, session_epoch=int(index >= opened), latency_ms=500.0)


def offset_resets(rows: Rows) -> None:
    for name, count in (("range +", 2), ("range -", 1)):
        client = Client(rows, name)
        for index in range(count):
            client.fetches(index, fetch_offset=100, error="OFFSET_OUT_OF_RANGE")
    for name, count, committed in (("back +", 5, 7), ("back-four -", 4, 7), ("back-committed -", 5, 3)):
        client = Client(rows, name)
        client.says("offsets", 0, api="OffsetFetch", offset=committed)
        for index in range(count):
            client.fetches(index, fetch_offset=3, next_offset=10, records=7)
            client.fetches(index + 0.5, fetch_offset=10)
        client.fetches(count, fetch_offset=3)
    for name, records in (("without +", 1), ("without-empty -", 0)):
        client = Client(rows, name)
        client.fetches(0, fetch_offset=0, records=records)
        for index in range(5):
            client.says("offsets", index, api="OffsetFetch", offset=-1)
    _new_groups(rows)


def consumer_lag(rows: Rows) -> None:
    for name, read, made in (("lag +", 0, 100), ("lag-less -", 1, 100), ("lag-falls -", 200, 100)):
        client = Client(rows, name)
        for second in range(11):
            at, end = second * read, 5000 * (read > made) + second * made
            client.fetches(second, fetch_offset=at, next_offset=at + read, high_watermark=end)
    _commit_lag(rows)


def _commit_lag(rows: Rows) -> None:
    """These fetch at the end of the partition, whatever they commit."""
    for name, seconds, commits, isolation in (
        ("commit-lag +", 16, {0: 0}, 0),
        ("commit-lag-slow +", 12, {second: second for second in range(12)}, 0),
        ("commit-lag-short -", 15, {0: 0}, 0),
        ("commit-lag-never -", 16, {}, 0),
        ("commit-lag-each -", 11, {second: second * 100 for second in range(11)}, 0),
        ("commit-lag-twice -", 12, {0: 0, 5: 500, 10: 1000}, 0),
        ("commit-lag-stable -", 16, {0: 0}, 1),
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
    gone = Client(rows, "commit-lag-gone -")
    gone.commits(0, 0)
    gone.fetches(1, fetch_offset=0, high_watermark=0, isolation_level=0)
    for second in range(2, 60):
        gone.says("produce", second, base_offset=second * 100, records=100)
    silent = Client(rows, "commit-lag-told +")  # it commits nothing, and was told what it had committed
    silent.says("offsets", 0, api="OffsetFetch", offset=0)
    for second in range(16):
        at = second * 100
        silent.fetches(second, fetch_offset=at, next_offset=at + 100, high_watermark=at, isolation_level=0)


def held_back_readers(rows: Rows) -> None:
    for name, seconds, stable, end, isolation in (
        ("held +", 10, 5, 6, 1),
        ("held-soon -", 9, 5, 6, 1),
        ("held-read -", 10, 6, 6, 1),
        ("held-uncommitted -", 10, 5, 6, 0),
    ):
        client = Client(rows, name)
        at = {"last_stable_offset": stable, "high_watermark": end, "isolation_level": isolation}
        client.says("produce", 0, client_id="forgetful", transactional_id="t-1", base_offset=5, records=1)
        for second in range(seconds + 1):
            client.fetches(second, fetch_offset=stable, **at)
    _held_back_in_session(rows)


def _held_back_in_session(rows: Rows) -> None:
    """Brokers leave partitions that have not changed out of their answers."""
    opens, goes_on = {"session_epoch": 0, "isolation_level": 1}, {"session_epoch": 1, "isolation_level": 1}
    open_at_5 = {"last_stable_offset": 5, "high_watermark": 6}
    for name, seconds in (
        ("held-quiet +", 10),
        ("held-quiet-soon -", 9),
        ("held-quiet-ended -", 20),
        ("held-quiet-ended-for-another -", 20),
        ("held-quiet-left -", 20),
    ):
        client = Client(rows, name)
        client.fetches(0, fetch_offset=5, **opens, **open_at_5)
        for second in range(1, seconds + 1):
            client.fetches(second, topic=None, partition=None, **goes_on)
    ended = {"last_stable_offset": 7, "high_watermark": 7}
    Client(rows, "held-quiet-ended -").fetches(9, bytes=100, **goes_on, **ended)
    another = {"topic": "held-quiet-ended-for-another -", "connection": 1}
    Client(rows, "held-not -").fetches(9, fetch_offset=5, **another, **opens, **ended)
    Client(rows, "held-quiet-left -").fetches(9, topic="another", fetch_offset=0, **opens)
    for name, asks in (("held-after-records +", True), ("held-works -", False)):
        client = Client(rows, name)
        client.fetches(0, fetch_offset=0, bytes=100, **opens, **open_at_5)
        if asks:
            client.fetches(1, fetch_offset=5, **goes_on)
        client.fetches(11, topic=None, partition=None, **goes_on)


def _new_groups(rows: Rows) -> None:
    for number, client_id in enumerate(STARTS):
        client = Client(rows, client_id)
        own = {"topic": "starts", "group": f"group-{number}"}
        client.says("offsets", number, api="OffsetFetch", offset=-1, **own)
        client.fetches(number, fetch_offset=0, records=1, topic="starts")


def uneven_assignment(rows: Rows) -> None:
    _assign(rows, "uneven +", (4, 0), 2, 10)
    _assign(rows, "uneven-one-more -", (3, 1, 0), 3, 60)
    _assign(rows, "uneven-unseen -", (4, 0), 3, 60)
    _assign(rows, "uneven-meanwhile -", (4, 0), 2, 9)


def idle_members(rows: Rows) -> None:
    _assign(rows, "idle +", (1, 1, 0), 3, 10)
    _assign(rows, "idle-not -", (1, 1, 1), 3, 60)
    _assign(rows, "idle-meanwhile -", (1, 0), 2, 9)


def _assign(rows: Rows, name: str, assigned: Sequence[int], members: int, lasting_s: int) -> None:
    """`members` as the leader is told, `assigned` partitions of those that are seen."""
    for member, count in enumerate(assigned):
        client = Client(rows, name)
        own: dict[str, Any] = {"member_id": f"{name}-{member}", "connection": number(f"{name}-{member}")}
        client.joins(0, members=members if member == 0 else None, **own)
        client.says("groups", 0, api="SyncGroup", generation=1, assigned=count, **own)
        for second in range(3, lasting_s + 1):
            client.beats(second, **own)


def unclean_stops(rows: Rows) -> None:
    """How many members, the time from their last heartbeat to the end of the connection, and who ended it."""
    for name, members, silent_s, why, more in (
        ("stops +", 3, 10.0, "closed by client", {}),
        ("stops-reset +", 3, 1.0, "reset by client", {}),
        ("stops-two -", 2, 1.0, "closed by client", {}),
        ("stops-silent -", 3, 10.1, "closed by client", {}),
        ("stops-broker -", 3, 1.0, "closed by broker", {}),
        ("stops-static -", 3, 1.0, "closed by client", {"instance_id": "i"}),
        ("stops-fenced -", 3, 1.0, "closed by client", {"error": "UNKNOWN_MEMBER_ID"}),
        ("stops-leaves -", 3, 1.0, "closed by client", {"api": "LeaveGroup"}),
        (
            "stops-848 -",
            3,
            1.0,
            "closed by client",
            {"api": "ConsumerGroupHeartbeat", "generation": -1},
        ),
    ):
        client = Client(rows, name)
        for member in range(members):
            own: dict[str, Any] = {
                "member_id": f"{name}-{member}",
                "connection": number(f"{name}-{member}"),
            }
            client.joins(member, **own)
            client.beats(member + 1, **own)
            client.beats(member + 2, **own, **more)
            ended = BEGIN + timedelta(seconds=member + 2 + silent_s)
            client.says("connections", 0, closed=ended, why=why, lost=0, **own)


def poison_records(rows: Rows) -> None:
    """Starts at the same committed offset: on how many connections, and with how many records from there."""
    for name, starts, reads, apart in (
        ("poison +", 5, 5, 1),
        ("poison-four -", 4, 5, 1),
        ("poison-read-once -", 5, 4, 1),
        ("poison-rebalances -", 9, 9, 0),
    ):
        client = Client(rows, name)
        for index in range(starts):
            at = {"api": "OffsetFetch", "offset": 7, "connection": index * apart}
            client.says("offsets", index, **at)
        for index in range(reads):
            client.fetches(index + 0.5, fetch_offset=7, records=1, connection=100 + index * apart)
    committed = Client(rows, "poison-goes-on -")
    for index in range(9):
        committed.says("offsets", index, api="OffsetFetch", offset=index, connection=index)
        committed.fetches(index + 0.5, fetch_offset=index, records=1, connection=100 + index)


def group_id_churn(rows: Rows) -> None:
    """Groups, the time from the first to begin to the last, and how long each is used."""
    for name, groups, span_s, life_s, api in (
        ("new-groups +", 10, 5, 1.25, "JoinGroup"),
        ("new-groups-848 +", 10, 5, 1.25, "ConsumerGroupHeartbeat"),
        ("new-groups-few -", 9, 5, 1, "JoinGroup"),
        ("new-groups-short -", 10, 4.9, 1, "JoinGroup"),
        ("new-groups-stay -", 10, 5, 1.26, "JoinGroup"),
        ("new-groups-known -", 10, 5, 1, "OffsetCommit"),
    ):
        client = Client(rows, name)
        for index in range(groups):
            begun_s, own = index * span_s / (groups - 1), {"group": f"{name} {index}", "member_id": ""}
            client.says("groups", begun_s, api=api, **own)
            client.says("groups", begun_s + life_s, api="LeaveGroup", **own)


def eager_rebalancing(rows: Rows) -> None:
    """The assignors of a member, and the generations in which it is."""
    eager = ["range", "roundrobin"]
    for name, generations, more in (
        ("eager +", 6, {"protocols": eager}),
        ("eager-and-more +", 6, {"protocols": ["cooperative-sticky", "range"]}),
        ("eager-few -", 5, {"protocols": eager}),
        ("eager-not -", 6, {"protocols": ["cooperative-sticky"]}),
        ("eager-static -", 6, {"protocols": eager, "instance_id": "i"}),
        ("eager-kafkajs +", 6, {"protocols": ["RoundRobinAssigner"]}),
        ("eager-streams -", 6, {"protocols": ["stream"]}),
        ("eager-connect -", 6, {"protocols": ["default"]}),
        ("eager-refused -", 6, {"protocols": eager, "error": "REBALANCE_IN_PROGRESS"}),
    ):
        client = Client(rows, name)
        for generation in range(generations):
            client.joins(generation, generation, **more)
    client = Client(rows, "eager-comes-and-goes -")
    for generation in range(9):
        own = {"protocols": eager, "member_id": f"m-{generation}"}
        client.joins(generation, generation, **own)


def cross_zone_reads(rows: Rows) -> None:
    """Bytes from the leader, in zone 1, and from a replica in zone 2, where the client is."""
    for name, away, near, more in (
        ("zone +", 1 << 20, 3 << 20, {}),
        ("zone-imported +", 1 << 20, 0, {"broker": "h:1"}),
        ("zone-bytes -", (1 << 20) - 1, 0, {}),
        ("zone-share -", 1 << 20, (3 << 20) + 4, {}),
        ("zone-untold -", 1 << 20, 0, {"rack": ""}),
        ("zone-old -", 1 << 20, 0, {"rack": None}),
        ("zone-unreachable -", 1 << 20, 0, {"rack": "zone-3"}),
        ("zone-replica -", 1 << 20, 0, {"is_replica": True}),
    ):
        client = Client(rows, name)
        for leader in (1, 2):
            told: dict[str, Any] = {
                "leader": leader,
                "leader_rack": f"zone-{leader}",
                "leader_address": f"h:{leader}",
            }
            told |= {"in_sync": [1, 2], "partition": leader}
            client.says("metadata", 0, **told)
        for broker, size in ((1, away), (2, near)):
            own = {"partition": 1, "broker": str(broker), "bytes": size, "rack": "zone-2"}
            client.fetches(1, **{**own, **more})


def share_redelivery(rows: Rows) -> None:
    """Records that were given, those of them that had been given before, and the highest count."""
    for name, acquired, again, count in (
        ("share +", 500, 50, 2),
        ("share-lost +", 500, 50, 5),
        ("share-few -", 490, 49, 2),
        ("share-part -", 501, 50, 2),
    ):
        client = Client(rows, name)
        for first in (0, 1):
            given = {
                "acquired": acquired * first,
                "again": again * first,
                "delivery_count": first * count or None,
            }
            client.says("shares", first, released=again, rejected=0, **given)


CASES = (
    commit_per_record, rebalance_storm, heartbeat_gaps, slow_polling, empty_fetches, fetch_session_thrashing,
    offset_resets, consumer_lag, held_back_readers, uneven_assignment, idle_members, unclean_stops,
    poison_records, group_id_churn, eager_rebalancing, cross_zone_reads, share_redelivery,
)  # fmt: skip
NAMES = {case.__name__ for case in CASES}
NAMED_TOO = {("commit-lag-stable -", "held_back_readers")}  # it is held back, and does not lag


class Written(NamedTuple):
    """The rows of all cases; `of`: by client id, the detector whose case it is."""

    rows: Rows
    of: dict[str, str]


@pytest.fixture(scope="module")
def written() -> Written:
    names = (
        "fetch", "groups", "commits", "offsets", "connections", "produce", "metadata", "shares",
    )  # fmt: skip
    rows: Rows = {name: [] for name in names}
    of: dict[str, str] = {}
    for case in CASES:
        case(rows)
        clients = {row["client_id"] for some in rows.values() for row in some}
        of |= dict.fromkeys(clients - of.keys(), case.__name__)
    return Written(rows, of)


@pytest.fixture(scope="module")
def findings(spark: SparkSession, written: Written) -> dict[tuple[str, str], str]:
    """By client id and detector, what was found."""
    frames = {}
    for name, some in written.rows.items():
        columns = [column.name for column in TABLES[name].columns]
        frames[name] = spark.createDataFrame(
            [tuple(row.get(column) for column in columns) for row in some], TABLES[name].ddl
        )
    tables: Any = SimpleNamespace(**frames)
    chosen = [detector for detector in DETECTORS if detector.name in NAMES]
    return {(row.client_id, row.detector): row.what for row in table(tables, chosen).collect()}


def test_each_detector_names_clients_at_its_thresholds_and_none_just_below(
    findings: dict[tuple[str, str], str], written: Written
) -> None:
    expected = {(client_id, name) for client_id, name in written.of.items() if client_id.endswith("+")}
    assert findings.keys() == expected - {(one, "offset_resets") for one in STARTS[1:]} | NAMED_TOO


@pytest.mark.parametrize(
    ("detector", "client", "what"),
    [
        (
            "consumer_lag",
            "commit-lag +",
            "commits 0 records a second of 100 that are produced: its lag grew from 0 to 1500 records in "
            "15 s, on 1 partition(s) of 1 topic(s), most of it on commit-lag +; nothing was committed in "
            "the last 15 s",
        ),
        (
            "held_back_readers",
            "held +",
            "saw nothing from offset 5 of held +-0 on for 10.0 s, though there are records up to offset 5: "
            "transactional id t-1 of client forgetful has not ended its transaction; 1 partition(s) in all",
        ),
        (
            "offset_resets",
            "starts-10000 +",
            "5 times without a committed offset on 1 partition(s); it had 5 group ids, as `group-0`: a new "
            "group id at each start",
        ),
        (
            "share_redelivery",
            "share-lost +",
            "50 of the 500 records that it got had been delivered before, up to 4 times; it released 100 and "
            "rejected 0",
        ),
        (
            "cross_zone_reads",
            "zone +",
            "reads 1.0 of 4.0 MB from other zones, though zone zone-2 has replicas in sync",
        ),
        (
            "group_id_churn",
            "new-groups +",
            "had 10 groups in 5 s, as `new-groups + 0`, 2.5 of them in use at a time",
        ),
        (
            "eager_rebalancing",
            "eager +",
            "a member gave up all of its partitions for 5 rebalances (assignors: range, roundrobin)",
        ),
    ],
)
def test_a_finding_says_what_an_operator_has_to_know(
    detector: str, client: str, what: str, findings: dict[tuple[str, str], str]
) -> None:
    assert findings[client, detector] == what
