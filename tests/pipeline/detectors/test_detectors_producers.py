"""Detectors of producers on rows at their thresholds and just below; each case is a client of its own."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from klamm.pipeline.detectors.finding import Finding, findings
from klamm.pipeline.schemas import TABLES

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PLACE = {"broker": "2", "client": "10.0.0.1:5000", "topic": "orders", "partition": 0}
COMMON = {"capture": "c", "cluster": "kafka", **PLACE}
PRODUCER = {"producer_id": 7, "producer_epoch": 0, "answered": True, "error": "NONE"}
SENT = {"acks": -1, "bytes": 5000, "batches": 1, "records": 20, "codec": "lz4"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "produce": COMMON | PRODUCER | SENT,
    "batches": COMMON | SENT | {"side": "request"},
    "transactions": COMMON | PRODUCER,
    "metadata": COMMON,
    "frames": COMMON,
}
OTHERS = ("fetch", "groups")


class Rows:
    """Rows of every table; each client has a connection of its own."""

    def __init__(self) -> None:
        self.of: dict[str, list[dict[str, Any]]] = {name: [] for name in (*DEFAULTS, *OTHERS)}
        self.clients: set[str] = set()
        self.exchange = 0

    def add(self, table: str, client_id: str, at_s: float, **values: Any) -> None:
        self.exchange += 1
        self.clients.add(client_id)
        place = {"connection": len(self.clients), "exchange": self.exchange, "base_sequence": self.exchange}
        row = DEFAULTS[table] | place | {"client_id": client_id}
        self.of[table].append(row | {"time": at(at_s), **values})


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def tiny_batches(rows: Rows) -> None:
    cases = {"tiny +": (20, 9, 1023), "tiny rate -": (19, 9, 1023), "tiny records -": (20, 10, 1023)}
    for client_id, (rate, records, size) in cases.items():
        for index in range(6 * rate):
            at_s = index // rate + index % rate / rate
            rows.add("batches", client_id, at_s, records=records, bytes=size)


def no_compression(rows: Rows) -> None:
    cases = {
        "plain +": ["none"] * 8,
        "plain bytes -": ["none"] * 7,
        "plain share -": ["none"] * 8 + ["lz4"] * 9,
    }
    for client_id, codecs in cases.items():
        for index, codec in enumerate(codecs):
            rows.add("batches", client_id, index, records=100, bytes=1 << 17, codec=codec)


def weak_acks(rows: Rows) -> None:
    for client_id, acks, count in (
        ("acks +", 1, 20),
        ("acks 0 +", 0, 20),
        ("acks few -", 1, 19),
        ("acks all -", -1, 20),
    ):
        for index in range(count):
            rows.add(
                "produce", client_id, index, acks=acks, producer_id=-1, producer_epoch=-1, base_sequence=-1
            )


def large_messages(rows: Rows) -> None:
    cases = {"large +": (5, 1 << 19), "large few -": (4, 1 << 19), "large size -": (5, (1 << 19) - 1)}
    for client_id, (count, size) in cases.items():
        for index in range(count):
            rows.add("produce", client_id, index, records=1, bytes=size)
    rows.add("produce", "large refused +", 0, error="MESSAGE_TOO_LARGE")
    rows.add("produce", "large list refused +", 0, error="RECORD_LIST_TOO_LARGE")


def hot_partitions(rows: Rows) -> None:
    for topic, partitions in (("hot", 6), ("even", 6), ("sticky", 6), ("pinned", 3)):
        for partition in range(partitions):
            rows.add("metadata", "admin", 0, topic=topic, partition=partition)
    for client_id, topic, hottest, size in (
        ("hot +", "hot", 25, 16_384),
        ("hot -", "even", 24, 16_384),
        ("hot sticky -", "sticky", 60, 16_383),
    ):
        for index in range(60):
            partition = 0 if index < hottest else 1 + index % 5
            rows.add("produce", client_id, index, topic=topic, partition=partition, bytes=size)
    for partition in range(3):
        for index in range(30):
            pinned = {"topic": "pinned", "partition": partition, "bytes": 16_384}
            rows.add("produce", f"hot {partition} -", index, **pinned)


def key_skew(rows: Rows) -> None:
    for partition in range(3):
        rows.add("metadata", "admin", 0, topic="keyed", partition=partition)
    cases = {
        "skew +": (10, 12, 1),
        "skew share -": (9, 12, 1),
        "skew bursts -": (20, 1, 3),
        "skew no keys -": (0, 0, 1),
    }
    for client_id, (top, keys, partitions) in cases.items():
        for index in range(25):
            batch = {"keys": keys, "top_key_records": top, "partition": index % partitions}
            rows.add("batches", client_id, index, topic="keyed", **batch)


def throttled_clients(rows: Rows) -> None:
    for client_id, count, throttle_ms in (
        ("throttled +", 4, 500),
        ("throttled few -", 2, 1000),
        ("throttled ms -", 4, 499),
    ):
        for index in range(count):
            rows.add("produce", client_id, index, throttle_ms=throttle_ms)
    for partition in range(5):
        rows.add("produce", "throttled one -", 0, exchange=0, partition=partition, throttle_ms=900)


def fenced_producers(rows: Rows) -> None:
    times = {"fenced +": [0, 300, 600], "fenced slow -": [0, 300, 601], "fenced twice -": [0, 1]}
    for client_id, fenced in times.items():
        for epoch, at_s in enumerate(fenced):
            refused = {"transactional_id": client_id, "producer_epoch": epoch, "error": "PRODUCER_FENCED"}
            rows.add("transactions", client_id, at_s, api="EndTxn", **refused)
    for epoch in range(9):
        own = {"transactional_id": None, "producer_epoch": epoch, "error": "INVALID_PRODUCER_EPOCH"}
        rows.add("produce", "fenced by itself -", epoch, **own)
    for client_id, count in (("zombie +", 21), ("zombie few -", 19)):
        for index in range(count):
            rows.add(
                "produce", client_id, index / 2, transactional_id=client_id, error="INVALID_PRODUCER_EPOCH"
            )


def open_transactions(rows: Rows) -> None:
    for client_id, begin_s, end_s in (
        ("open +", [0, 100], [30, 130]),
        ("open short -", [0, 100], [29, 129]),
        ("open once -", [0, 100], [30, 101]),
        ("open at the end -", [0, 150], [1, 199]),
    ):
        rows.add(
            "transactions", client_id, -1, api="InitProducerId", transactional_id=client_id, timeout_ms=60_000
        )
        for begin, end in zip(begin_s, end_s, strict=True):
            refused = {"transactional_id": client_id, "error": "CONCURRENT_TRANSACTIONS"}
            rows.add("transactions", client_id, begin - 40, api="AddPartitionsToTxn", **refused)
            rows.add("transactions", client_id, begin, api="AddPartitionsToTxn", transactional_id=client_id)
            rows.add("transactions", client_id, end, api="EndTxn", transactional_id=client_id)
    for number in range(
        2
    ):  # a timeout that was not seen, nothing after it, and no AddPartitionsToTxn (KIP-890)
        rows.add("produce", "open for good +", 100, transactional_id=f"for good {number}")
    rows.add("frames", "anybody", 200)


def clock_skew(rows: Rows) -> None:
    clocks: dict[str, Callable[[float], float]] = {
        "ahead +": lambda at_s: at_s + 300,
        "ahead -": lambda at_s: at_s + 299,
        "behind +": lambda at_s: at_s - 301,
        "behind -": lambda at_s: at_s - 299,
        "old, all at once -": lambda at_s: -1e6,
        "old, faster -": lambda at_s: 10 * at_s - 1e6,
        "seconds +": lambda at_s: at_s / 1000 - START.timestamp() * 0.999,
    }
    for client_id, clock in clocks.items():
        for index in range(10):
            rows.add("batches", client_id, index, max_timestamp=at(clock(index)))


def stale_leader(rows: Rows) -> None:
    moved = {"error": "NOT_LEADER_OR_FOLLOWER"}
    for client_id, count, span_s in (
        ("stale +", 10, 3),
        ("stale few -", 9, 3),
        ("stale soon -", 10, 2.9),
        ("stale asks -", 10, 3),
    ):
        for index in range(count):
            rows.add("produce", client_id, index * span_s / (count - 1), **moved)
    rows.add("frames", "stale asks -", 1.5, api="Metadata", side="request")
    summary = "stale told the leader -"  # by each answer, as of KIP-951
    for at_s in [*(index / 10 for index in range(10)), 40]:
        rows.add("produce", summary, at_s, **moved)
    rows.add("produce", summary, 2, broker="1", connection=1000)
    for index in range(10):
        rows.add("produce", "stale beside +", index, **moved)
        rows.add("produce", "stale beside +", index, partition=1)
    for index in range(10):
        rows.add(
            "produce",
            "stale elsewhere -",
            index,
            connection=1000 + index % 2,
            client=f"10.0.0.{index % 2}:1",
            **moved,
        )


def retries_and_duplicates(rows: Rows) -> None:
    plain = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}
    for client_id, error, batch, again, once, seconds in (
        ("again +", "REQUEST_TIMED_OUT", {}, 20, 360, 5),
        ("again share -", "REQUEST_TIMED_OUT", {}, 20, 361, 5),
        ("again few -", "REQUEST_TIMED_OUT", {}, 19, 0, 5),
        ("again seconds -", "REQUEST_TIMED_OUT", {}, 20, 0, 4),
        ("again unanswered +", None, {}, 20, 0, 5),
        ("again taken +", "NONE", {}, 20, 0, 5),
        ("again refused +", "NOT_ENOUGH_REPLICAS", {}, 20, 0, 5),
        ("again moved -", "NOT_LEADER_OR_FOLLOWER", {}, 20, 0, 5),
        ("again plain +", "REQUEST_TIMED_OUT", plain, 20, 0, 5),
        ("again plain taken -", "NONE", plain, 20, 0, 5),
    ):
        for index in range(again):
            same = {"base_sequence": -2 - index, "base_timestamp": at(index), **batch}
            first = same | {"error": error, "answered": error is not None, "connection": 1000 + index}
            rows.add("produce", client_id, index % seconds, **first)
            rows.add("produce", client_id, index % seconds + 0.1, connection=2000 + index, **same)
        for index in range(once):
            rows.add("produce", client_id, index)


def transactional_id_churn(rows: Rows) -> None:
    """Ids, the time from the first to begin to the last, and how long each is used."""
    for client_id, ids, span_s, life_s in (
        ("new ids +", 10, 5, 1.25),
        ("new ids few -", 9, 5, 1),
        ("new ids short -", 10, 4.9, 1),
        ("new ids stay -", 10, 5, 1.26),
    ):
        for index in range(ids):
            own = {"transactional_id": f"{client_id} {index}"}
            begun_s = index * span_s / (ids - 1)
            rows.add("transactions", client_id, begun_s, api="InitProducerId", **own)
            rows.add("transactions", client_id, begun_s + life_s, api="EndTxn", committed=True, **own)


def short_request_timeouts(rows: Rows) -> None:
    for client_id, timeout_ms, count, acks in (
        ("short +", 9_999, 20, -1),
        ("short acks 1 +", 1_000, 20, 1),
        ("short ms -", 10_000, 20, -1),
        ("short few -", 9_999, 19, -1),
        ("short acks 0 -", 1_000, 20, 0),
    ):
        for index in range(count):
            rows.add("produce", client_id, index, timeout_ms=timeout_ms, acks=acks)


CASES = (
    tiny_batches, no_compression, weak_acks, large_messages, hot_partitions, key_skew, throttled_clients,
    fenced_producers, open_transactions, clock_skew, stale_leader, retries_and_duplicates,
    transactional_id_churn, short_request_timeouts,
)  # fmt: skip
NAMES = [case.__name__ for case in CASES]
HIGH = {
    "acks 0 +",
    "large refused +",
    "large list refused +",
    "fenced +",
    "zombie +",
    "open for good +",
    "seconds +",
    "stale +",
    "stale beside +",
    "again plain +",
}


def table(spark: SparkSession, name: str, rows: list[dict[str, Any]]) -> DataFrame:
    """By way of Arrow, it needs no Python worker."""
    schema = cast(StructType, StructType.fromDDL(TABLES[name].ddl))
    return spark.createDataFrame(pa.Table.from_pylist(rows, to_arrow_schema(schema, timezone="UTC")), schema)


def named(spark: SparkSession, rows: Rows) -> list[Finding]:
    made = {name: table(spark, name, of) for name, of in rows.of.items()}
    tables: Any = SimpleNamespace(**made, some_frames=lambda *columns: made["frames"].select(*columns))
    done = findings(
        tables, [import_module(f"klamm.pipeline.detectors.producers.{name}").DETECTOR for name in NAMES]
    )
    assert done.failed == {}
    return done.found


def test_each_detector_names_clients_at_its_thresholds_and_none_just_below(spark: SparkSession) -> None:
    rows, of = Rows(), dict[str, str]()
    for case in CASES:
        case(rows)
        of |= dict.fromkeys(rows.clients - of.keys(), case.__name__)
    found = named(spark, rows)
    expected = {(client_id, name) for client_id, name in of.items() if client_id.endswith("+")}
    assert {(str(one.client_id), one.detector) for one in found} == expected
    assert {one.client_id for one in found if one.severity == "high"} == HIGH
    (refused,) = (one for one in found if one.client_id == "again refused +")
    assert refused.what.endswith("20 after other errors (NOT_ENOUGH_REPLICAS)")
