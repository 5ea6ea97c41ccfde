"""Detectors of connections and the cluster on rows at their thresholds and just below; each case is a client,
or a cluster, of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from klamm.captures.streams.blanking import Keeping
from klamm.captures.streams.connection_reader import ConnectionReader
from klamm.decoders import API, encode
from klamm.decoders.error_codes import ERRORS
from klamm.decoders.headers import request_frame, response_frame
from klamm.decoders.schema import Side
from klamm.pipeline.detectors.connections import out_of_order_answers as detector
from klamm.pipeline.detectors.connections.unexplained_errors import (
    ELSEWHERE,
    NORMAL,
    OF_MEMBERS,
    SETTINGS,
    WRONG_SETTING,
)
from klamm.pipeline.detectors.finding import Finding, findings
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.schemas import TABLES
from klamm.pipeline.tables import Tables
from tests.captures.rows import MS, START_NS, connection, written

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COMMON = {"capture": "c", "cluster": "kafka", "broker": "2", "client": "10.0.0.1:5000"}
PASSED = {"request_fate": "passed", "response_fate": "passed"}
REQUEST = PASSED | {
    "request_bytes": 100, "awaits": True, "answered": True, "latency_ms": 5.0, "turn_ms": 0.0
}  # fmt: skip
CONNECTION = {"requests": 10, "responses": 10, "lost": 0, "why": "closed by client"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "exchanges": COMMON | REQUEST | {"version": 12, "errors": [], "topics": []},
    "connections": COMMON | CONNECTION,
    "metadata": COMMON | {"answered": True, "auto_create": False},
    "produce": COMMON,
    "fetch": COMMON,
    "groups": COMMON | {"answered": True, "error": "NONE", "group": "g"},
}
UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"
NAMELESS = (
    None, "", "rdkafka", "kafka-python-3.0.12", "kafka-python-producer-1", "aiokafka-0.14.0", "producer-1",
    "consumer-billing-2", "sarama",
)  # fmt: skip
GROUP_EACH_START = [
    f"consumer-billing-173229240{number}-1" for number in range(3)
]  # one finding, of the first
BY_DEFAULT = (*NAMELESS, GROUP_EACH_START[0])
NAMED = ("rdkafka-billing", "kafka-python-billing", "billing-producer-1", "consumer", "sarama-1")


class Rows:
    """Rows of every table. Each has a connection and an exchange of its own, unless it says so."""

    def __init__(self) -> None:
        self.of: dict[str, list[dict[str, Any]]] = {name: [] for name in DEFAULTS}
        self.number = 0

    def add(self, table: str, client_id: str | None, at_s: float, **values: Any) -> int:
        self.number += 1
        place = {"connection": self.number, "exchange": self.number, "client_id": client_id}
        times = {
            "time": at(at_s),
            "first": at(at_s),
            "opened": at(at_s),
            "last": values.get("closed", at(at_s)),
        }
        self.of[table].append(DEFAULTS[table] | place | times | values)
        return self.number


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def metadata_storm(rows: Rows) -> None:
    for number, (client_id, times, errors) in enumerate(
        (
            ("storm +", range(33), []),
            ("storm few -", range(32), []),
            ("storm slow -", range(0, 400, 10), []),
            ("storm bursts -", [burst * 8 + step / 16 for burst in range(3) for step in range(12)], []),
            ("storm errors -", range(33), [{"code": 3, "name": UNKNOWN, "count": 1}]),
        )
    ):
        for at_s in times:
            rows.add("exchanges", client_id, at_s, api="Metadata", connection=-number, errors=errors)
    for at_s in range(60):
        rows.add("exchanges", "storm churn -", at_s, api="Metadata")
    for client_id, rebalance in (
        ("storm of others -", {"api": "Heartbeat", "error": "REBALANCE_IN_PROGRESS"}),
        ("storm of others again -", {"api": "ConsumerGroupHeartbeat", "assigned": 2}),
        ("storm of a member +", {"api": "Heartbeat"}),
    ):
        number = rows.number + 1
        for at_s in range(60):
            rows.add("exchanges", client_id, at_s, api="Metadata", connection=-number)
            rows.add("groups", client_id, at_s // 2 * 2 + 0.5, **rebalance)


def connection_churn(rows: Rows) -> None:
    for client_id, count, span_s, life_s, more in (
        ("churn +", 15, 75, 10, {}),
        ("churn few -", 14, 70, 10, {}),
        ("churn rare -", 15, 76, 10, {}),
        ("churn long -", 15, 75, 11, {}),
        ("churn broker -", 15, 75, 10, {"why": "closed by broker"}),
        ("churn unanswered -", 15, 75, 10, {"responses": 0}),
    ):
        for index in range(count):
            at_s = index * span_s / (count - 1)
            rows.add("connections", client_id, at_s, closed=at(at_s + life_s), **more)
    for index in range(15):
        host = f"10.0.0.{index % 2}:{index}"
        rows.add("connections", "churn hosts -", index, closed=at(index), client=host)


def old_clients(rows: Rows) -> None:
    for client_id, api, version, count, software in (
        ("removed +", "Produce", 2, 1, None),
        ("old +", "Fetch", 9, 10, None),
        ("old few -", "Fetch", 9, 9, None),
        ("old not -", "Fetch", 10, 10, None),
        ("old release +", "ApiVersions", 3, 10, "librdkafka 1.8.1"),
        ("old letters +", "ApiVersions", 3, 10, "Sarama v1.29.1-2"),
        ("old release -", "ApiVersions", 3, 10, "librdkafka 1.8.2"),
        ("old wrapper -", "ApiVersions", 3, 10, "confluent-kafka-python 2.16.1-rdkafka-2.16.0"),
        ("old unknown -", "ApiVersions", 3, 10, "apache-kafka-java 2.4.0"),
        ("old dirty -", "ApiVersions", 3, 10, "librdkafka unknown"),
    ):
        for index in range(count):
            rows.add("exchanges", client_id, index, api=api, version=version, software=software)


def client_ids(rows: Rows) -> None:
    for client_id in (*NAMELESS, *NAMED):
        rows.add("connections", client_id, 0, requests=4)
        rows.add("connections", client_id, 1, requests=6)
    rows.add("connections", "kgo", 0, requests=9)
    for client_id in GROUP_EACH_START:
        rows.add("connections", client_id, 0, requests=4)


def slow_brokers(rows: Rows) -> None:
    for cluster, count, slow_ms, apis, slow_seconds in (
        ("slow +", 30, 55.0, 2, range(8)),
        ("slow few -", 29, 55.0, 2, range(8)),
        ("slow ms -", 30, 54.0, 2, range(8)),
        ("slow producer -", 30, 55.0, 1, range(8)),
        ("slow once -", 30, 55.0, 2, range(7)),
        ("slow seldom -", 30, 55.0, 2, range(0, 30, 4)),
    ):
        for api, late in (("Produce", True), ("ListOffsets", apis == 2)):
            for index in range(3 * count):
                broker, nth = 1 + index % 3, index // 3
                slow = late and broker == 3 and nth in slow_seconds
                place = {"cluster": cluster, "broker": str(broker), "api": api}
                took = {"latency_ms": 1000 + slow_ms if slow else 1005.0, "turn_ms": 1000.0}
                rows.add("exchanges", "steady -", nth, **place, **took)
        for index in range(200):
            place = {"cluster": cluster, "broker": str(1 + index % 3), "api": "Fetch"}
            rows.add("exchanges", "steady -", index, latency_ms=500.0 * (index % 3), **place)
    slow_follower(rows)


def slow_follower(rows: Rows) -> None:
    """Broker 3 is slow with all; broker 2 with writes alone, for which it waits for broker 3."""
    for client_id in ("steady -", "steady too -"):
        for api, slow in (("Produce", (2, 3)), ("InitProducerId", (2,)), ("ListOffsets", (3,))):
            for index in range(90):
                broker, nth = 1 + index % 3, index // 3
                took = {"latency_ms": 55.0 if broker in slow and nth < 8 else 5.0, "turn_ms": 0.0}
                place = {"cluster": "slow follower +", "broker": str(broker), "api": api}
                rows.add("exchanges", client_id, nth, **place, **took)


def unanswered_requests(rows: Rows) -> None:
    for client_id, api, count, wait_s, why in (
        ("timeout +", "Produce", 3, 1, "closed by client"),
        ("timeout few -", "Produce", 2, 1, "closed by client"),
        ("timeout soon -", "Produce", 3, 0.9, "reset by client"),
        ("timeout broker -", "Produce", 3, 40, "closed by broker"),
        ("timeout fetch -", "Fetch", 3, 1, "closed by client"),
        ("timeout heartbeat -", "OffsetFetch", 3, 1, "closed by client"),
        ("stuck +", "Produce", 3, 30, "the capture ended"),
        ("stuck not -", "Produce", 3, 29, "the capture ended"),
    ):
        for index in range(count):
            at_s = index * 100.0
            of = rows.add("connections", client_id, at_s, closed=at(at_s + 1 + wait_s), why=why)
            waits = {"answered": False, "latency_ms": None}
            rows.add("exchanges", client_id, at_s + 1, connection=of, api=api, **waits)
            if client_id == "timeout heartbeat -":
                rows.add("exchanges", client_id, at_s + 1, connection=of, api="Heartbeat", **waits)
    for client_id, anew_s in (("anew +", 1.0), ("anew soon -", 0.9), ("anew later -", 2.0)):
        for index in range(4):
            at_s = index * (1 + anew_s)
            of = rows.add("connections", client_id, at_s, closed=at(50), why="the capture ended")
            rows.add("exchanges", client_id, at_s + 1, connection=of, api="Produce", latency_ms=2000.0)


def out_of_order_answers(rows: Rows) -> None:
    """A request 100 ms after another one on the same connection, and when they were answered."""
    unanswered = {"answered": False, "latency_ms": None}
    for cluster, first_ms, then_ms, first, then in (
        ("order +", 110.001, 10.0, {}, {}),
        ("order same -", 110.0, 10.0, {}, {}),
        ("order kept -", 110.0, 20.0, {}, {}),
        ("order first made -", 200.0, 10.0, {"response_fate": "made"}, {}),
        ("order then made -", 200.0, 10.0, {}, {"response_fate": "made"}),
        ("order made by klamm -", 200.0, 10.0, {}, {"request_fate": "made"}),
        ("order unanswered -", None, 10.0, unanswered, {}),
        ("order acks 0 -", None, 10.0, {"awaits": False, **unanswered}, {}),
        ("order elsewhere -", 200.0, 10.0, {}, {"connection": -100}),
    ):
        place = {"cluster": cluster, "broker": "3", "connection": rows.number + 1}
        rows.add("exchanges", "steady -", 0, **place | {"api": "Fetch", "latency_ms": first_ms} | first)
        rows.add("exchanges", "steady -", 0.1, **place | {"api": "Produce", "latency_ms": then_ms} | then)


def authentication_failures(rows: Rows) -> None:
    failed = {"auth_error": "SASL_AUTHENTICATION_FAILED"}
    for client_id, failures, successes in (("auth +", 5, 5), ("auth few -", 4, 0), ("auth share -", 5, 6)):
        for index in range(failures + successes):
            more = failed if index < failures else {}
            ended = {"closed": at(index + 0.5), "why": "closed by broker"}
            rows.add("connections", client_id, index, mechanism="PLAIN", **ended, **more)


def auto_created_topics(rows: Rows) -> None:
    for client_id, error_name, auto_create in (
        ("auto +", {0: UNKNOWN, 30: "NONE"}, True),
        ("auto later -", {0: UNKNOWN, 31: "NONE"}, True),
        ("auto not -", {0: UNKNOWN, 1: "NONE"}, False),
        ("auto known -", {0: "NONE", 1: UNKNOWN, 2: "NONE"}, True),
        ("auto made -", {0: UNKNOWN, 1: "NONE"}, True),
    ):
        for at_s, error in error_name.items():
            rows.add("metadata", client_id, at_s, topic=client_id, error=error, auto_create=auto_create)
    rows.add("exchanges", "admin -", 0.5, api="CreateTopics", topics=["auto made -", "other"])


def unexplained_errors(rows: Rows) -> None:
    for client_id, api, error, times in (
        ("refused +", "CreateTopics", "TOPIC_ALREADY_EXISTS", range(3)),
        ("refused few -", "CreateTopics", "TOPIC_ALREADY_EXISTS", range(2)),
        ("setting +", "Produce", "INVALID_TIMESTAMP", range(1)),
        ("lasting +", "Produce", "NOT_ENOUGH_REPLICAS", (0, 5, 10)),
        ("passing -", "Produce", "NOT_ENOUGH_REPLICAS", (0, 1, 2, 3, 9)),
        ("passing again -", "Produce", "NOT_ENOUGH_REPLICAS", (0, 7, 14, 21)),
        ("joining -", "JoinGroup", "MEMBER_ID_REQUIRED", range(20)),
        ("moved -", "Produce", "NOT_LEADER_OR_FOLLOWER", range(20)),
    ):
        for at_s in times:
            errors = [{"code": 1, "name": error, "count": 2}]
            rows.add("exchanges", client_id, at_s, api=api, errors=errors, topics=["orders"])
    rows.add("exchanges", "setting +", 1, api="Produce")


def unknown_topics(rows: Rows) -> None:
    for client_id, table, count, span_s, found_s in (
        ("unknown +", "metadata", 10, 8, -1),
        ("unknown produce +", "produce", 10, 8, -1),
        ("unknown few -", "metadata", 9, 8, -1),
        ("unknown soon -", "metadata", 10, 7.9, -1),
        ("unknown rare -", "fetch", 10, 101, -1),
        ("unknown found -", "metadata", 10, 8, 8),
        ("unknown found first -", "metadata", 10, 8, 0),
    ):
        for index in range(count):
            rows.add(table, client_id, index * span_s / (count - 1), topic="orders", error=UNKNOWN)
        rows.add("metadata", client_id, found_s, topic="orders", error="NONE")


def few_replicas(rows: Rows) -> None:
    """By topic: replicas, and at which second how many were in sync."""
    for topic, replicas, in_sync in (
        ("alone +", 1, {0: 1}),
        ("two -", 2, {0: 2}),
        ("short +", 3, {0: 3, **dict.fromkeys(range(1, 302, 30), 2)}),
        ("short at first +", 3, dict.fromkeys(range(0, 301, 30), 2)),
        ("short soon -", 3, {0: 3, **dict.fromkeys(range(1, 301, 30), 2), 300.9: 2}),
        ("short again -", 3, dict.fromkeys(range(0, 601, 30), 2) | {270: 3, 300: 3}),
        ("short unseen -", 3, dict.fromkeys(range(0, 271, 30), 2) | dict.fromkeys(range(301, 572, 30), 2)),
    ):
        for at_s, isr in in_sync.items():
            told = {"topic": topic, "partition": 0, "replicas": replicas, "isr": isr}
            rows.add("metadata", f"topic {topic}", at_s, **told)
    told = {"cluster": "of one broker", "topic": "all", "partition": 0, "replicas": 1, "isr": 1}
    rows.add("metadata", "topic all -", 0, **told)


def leader_skew(rows: Rows) -> None:
    """By topic: at which second which brokers led its partitions."""
    for topic, led in (
        ("skew +", {0: [1, 1, 1, 1, 1, 2], 10: [1, 1, 1, 1, 1, 3]}),
        ("skew less -", {0: [1, 1, 1, 1, 2, 2], 10: [1, 1, 1, 1, 2, 3]}),
        ("skew small -", {0: [1] * 5, 10: [1] * 5}),
        ("skew short -", {0: [1] * 6, 9.9: [1] * 6}),
        ("skew passed -", {0: [1] * 6, 20: [1, 2, 3, 1, 2, 3]}),
        ("skew since +", {0: [1, 2, 3, 1, 2, 3], 5: [2] * 6, 15: [2] * 6}),
    ):
        _led(rows, topic, led)
    _led(rows, "skew of two", dict.fromkeys((0, 10), [1] * 9 + [2]), cluster="two")
    _led(rows, "skew of two less -", dict.fromkeys((0, 10), [1] * 8 + [2] * 2), cluster="two")
    _led(rows, "skew of one -", dict.fromkeys((0, 10), [1] * 6), cluster="one")


def _led(rows: Rows, topic: str, led: Mapping[Any, Sequence[int]], cluster: str = "kafka") -> None:
    """An answer to Metadata for each time of `led`, with the leaders of the topic's partitions."""
    for at_s, leaders in led.items():
        number = rows.number + 1
        for partition, leader in enumerate(leaders):
            told = {"cluster": cluster, "topic": topic, "partition": partition, "leader": leader}
            rows.add("metadata", f"topic {topic}", at_s, connection=number, exchange=number, **told)


def many_connections(rows: Rows) -> None:
    for client_id, count, each in (
        ("many +", 10, {}),
        ("many few -", 9, {}),
        ("many unanswered -", 20, {"responses": 0}),
    ):
        for index in range(count):
            rows.add("connections", client_id, index, **each)
    for index in range(20):
        rows.add("connections", "many in turn -", index, closed=at(index + 9), why="closed by broker")
        rows.add("connections", "many in turn too +", index, closed=at(index + 10), why="closed by broker")
        rows.add("connections", "many brokers -", index, broker=str(index % 3))
        rows.add("connections", "many hosts -", index, client=f"10.0.0.{index % 3}:{index}")


CASES = (
    few_replicas, leader_skew, many_connections, metadata_storm, connection_churn, old_clients, client_ids,
    slow_brokers, out_of_order_answers, unanswered_requests, authentication_failures, auto_created_topics,
    unexplained_errors, unknown_topics,
)  # fmt: skip
NAMES = [case.__name__ for case in CASES]


def table(spark: SparkSession, name: str, rows: list[dict[str, Any]]) -> DataFrame:
    """By way of Arrow, it needs no Python worker; without bodies."""
    ddl = ", ".join(f"{one.name} {one.type}" for one in TABLES[name].columns if one.type != "variant")
    schema: Any = StructType.fromDDL(ddl)
    return spark.createDataFrame(pa.Table.from_pylist(rows, to_arrow_schema(schema, timezone="UTC")), schema)


def named(spark: SparkSession, rows: Rows) -> list[Finding]:
    tables: Any = SimpleNamespace(**{name: table(spark, name, of) for name, of in rows.of.items()})
    done = findings(
        tables, [import_module(f"klamm.pipeline.detectors.connections.{name}").DETECTOR for name in NAMES]
    )
    assert done.failed == {}
    return done.found


def test_each_detector_names_clients_at_its_thresholds_and_none_just_below(spark: SparkSession) -> None:
    rows = Rows()
    expected = {(cluster, "broker 3", "slow_brokers") for cluster in ("slow +", "slow follower +")}
    expected.add(("order +", "broker 3", "out_of_order_answers"))
    expected.add(("two", "topic skew of two", "leader_skew"))
    for case in CASES:
        before = {name: len(of) for name, of in rows.of.items()}
        case(rows)
        added = [row["client_id"] for name, of in rows.of.items() for row in of[before[name] :]]
        expected |= {("kafka", one, case.__name__) for one in added if one in BY_DEFAULT or one.endswith("+")}
    found = named(spark, rows)
    assert {(one.cluster, one.client_id or one.subject, one.detector) for one in found} == {
        (cluster, who or None, detector) for cluster, who, detector in expected
    }
    (anew,) = (one for one in found if one.client_id == GROUP_EACH_START[0])
    assert anew.what == (
        "3 client ids like `consumer-billing-*-1`, in 3 connections from 1 host(s), are the default of the "
        "Java client for as many group ids: a new group id at each start"
    )
    high = {one.client_id for one in found if one.severity == "high"}
    assert high == {None, "removed +", "timeout +", "stuck +", "anew +", "auth +", "setting +", "lasting +"}
    (setting,) = (one for one in found if one.client_id == "setting +")
    assert (setting.subject, setting.what) == (
        "Produce INVALID_TIMESTAMP",
        "1 of 2 Produce requests were answered INVALID_TIMESTAMP: a record's timestamp is too far from the "
        "broker's clock; topic orders; see message.timestamp.after.max.ms, message.timestamp.before.max.ms",
    )


def test_answers_are_in_the_order_in_which_the_broker_sent_them(spark: SparkSession, tmp_path: Path) -> None:
    """Two requests on each connection. One broker answers out of order; one in order, but rules delay its
    answers; one the second request alone, as klamm answers the first; one both in one packet.
    """
    connections = {broker: connection(number, broker) for number, broker in enumerate("1234")}
    readers = {broker: ConnectionReader(one, Keeping()) for broker, one in connections.items()}
    first, second = (_beat(number, "request") for number in (0, 1))
    to_first, to_second = (_beat(number, "response") for number in (0, 1))
    rows = [row for broker in "124" for row in readers[broker].feed("request", first + second, START_NS)]
    rows += readers["1"].feed("response", to_second, START_NS + 10 * MS)
    rows += readers["1"].feed("response", to_first, START_NS + 20 * MS)
    rows += readers["2"].feed("response", to_first, START_NS + 10 * MS, forwarded=False)
    rows += readers["2"].feed("response", to_second, START_NS + 20 * MS, forwarded=False)
    rows += readers["2"].sent("response", to_first + to_second, START_NS + 90 * MS)
    rows += readers["3"].feed("request", first + second, START_NS, forwarded=False)
    rows += readers["3"].sent("request", second, START_NS)
    rows += readers["3"].feed("response", to_second, START_NS + 10 * MS, forwarded=False)
    rows += readers["3"].sent("response", to_first + to_second, START_NS + 90 * MS)
    rows += readers["4"].feed("response", to_second + to_first, START_NS + 10 * MS)
    captured = Tables(spark, str(written(tmp_path / "a.arrow", rows)))
    made = [
        (one.broker, one.exchange) for one in captured.exchanges.where("response_fate = 'made'").collect()
    ]
    assert (made, captured.exchanges.where("answered").count()) == ([("3", 0)], 8)
    (found,) = findings(captured, [detector.DETECTOR]).found
    assert (found.subject, found.count, found.what) == (
        "broker 1",
        1,
        "sent 1 answers before those to earlier requests, on 1 connection(s), most often one to Heartbeat "
        "before one to Heartbeat; a client of these connections is `app`",
    )


def _beat(correlation_id: int, side: Side) -> bytes:
    """A Heartbeat, or the answer to one."""
    if side == "response":
        return response_frame(API["Heartbeat"], 0, correlation_id, bytes(2))
    body = encode({"group_id": "g", "generation_id": 1, "member_id": "m"}, "Heartbeat", 0, "request")
    return request_frame(API["Heartbeat"], 0, correlation_id, "app", body)


def test_what_is_left_to_other_detectors_are_errors_and_detectors_that_there_are() -> None:
    assert set(ELSEWHERE) <= {one.name for one in DETECTORS}
    errors = [*WRONG_SETTING, *SETTINGS, *OF_MEMBERS]
    for looked_at, apis in (*ELSEWHERE.values(), *NORMAL):
        errors += looked_at
        assert set(apis) <= {one.name for one in API}
    assert [name for name in errors if ERRORS[name].name != name] == []
