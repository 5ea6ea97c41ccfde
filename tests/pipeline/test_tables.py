"""Tables of captures that a test tells: judged by the rows that `klamm export` writes of the same capture."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from klamm.captures.choosing import chosen
from klamm.captures.exchanges import exchanges
from klamm.captures.exports.exchange_rows import row
from klamm.captures.exports.exchange_schema import COLUMNS
from klamm.captures.storage.reading import read
from klamm.pipeline.bodies.swept_frames import LEAST
from klamm.pipeline.reading.parts import Part
from klamm.pipeline.schemas import TABLES
from klamm.pipeline.sql import condition
from klamm.pipeline.tables import Tables
from klamm.pipeline.tables.reading import Source, _unpack
from klamm.rules.expressions import parse
from tests.captures.rows import MS, TOPIC_ID, Talk, connection, in_time, written

JOIN = {
    "group_id": "billing",
    "session_timeout_ms": 45_000,
    "rebalance_timeout_ms": 300_000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": name, "metadata": b""} for name in ("range", "roundrobin")],
}
JOINED = {
    "generation_id": 7,
    "leader": "m-1",
    "member_id": "m-1",
    "members": [{"member_id": "m-1", "metadata": b""}],
}
SOFTWARE = {"client_software_name": "klamm-tests", "client_software_version": "1"}
INIT = {"transactional_id": "t", "transaction_timeout_ms": 60_000}
BEGUN = {"error_code": 0, "producer_id": 9, "producer_epoch": 2}
SAME = {column.name for column in COLUMNS} & {column.name for column in TABLES["exchanges"].columns} - {
    "time", "request_body", "response_body", "errors",
}  # fmt: skip


def talks() -> list[Talk]:
    """A client of all kinds, one that came before the capture, one whose last request is not answered."""
    client = (
        Talk(connection(1)).opened().exchange("ApiVersions", 3, SOFTWARE, {"error_code": 0, "api_keys": []})
    )
    client.metadata().produce().produce(acks=0).fetch().heartbeat(error_code=27)
    client.exchange("JoinGroup", 5, JOIN, JOINED).exchange("InitProducerId", 4, INIT, BEGUN)
    commit = {"name": "orders", "partitions": [{"partition_index": 3, "committed_offset": 5}]}
    asked = {
        "group_id": "billing",
        "generation_id_or_member_epoch": 7,
        "member_id": "m-1",
        "topics": [commit],
    }
    done = {"topics": [{"name": "orders", "partitions": [{"partition_index": 3, "error_code": 22}]}]}
    client.exchange("OffsetCommit", 8, asked, done).closed("the client")
    before = Talk(connection(2), client_id="before")
    before.response("Heartbeat", 4, {"error_code": 0}, 0, exchange=-1, api_key=-1, api_version=-1)
    before.heartbeat()
    waiting = Talk(connection(3), client_id="größer")
    waiting.heartbeat()
    waiting.request("Fetch", 4, {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1, "topics": []})
    waiting.closed("the broker")
    made = Talk(connection(4), client_id="faulted")
    made.exchange(
        "Heartbeat",
        4,
        {"group_id": "g", "generation_id": 1, "member_id": "m"},
        {"error_code": 16},
        fate="made",
    )
    return [client, before, waiting, made]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Of them all."""
    path = tmp_path_factory.mktemp("tables") / "a.arrow"
    return Tables(spark, str(written(path, in_time(*talks()))), persist=True)


def rows(tables: Tables, name: str, *where: str) -> list[dict[str, Any]]:
    found = getattr(tables, name)
    for one in where:
        found = found.where(one)
    return [one.asDict(recursive=True) for one in found.orderBy("connection").collect()]


def test_exchanges_are_those_that_export_writes(tables: Tables, tmp_path: Path) -> None:
    path = written(tmp_path / "a.arrow", in_time(*talks()))
    names = [column.name for column in COLUMNS]
    exported = [dict(zip(names, row(one), strict=True)) for one in chosen(exchanges(read(path)))]
    bodies = ["request_body", "response_body"]
    text = tables.exchanges.withColumns({name: F.to_json(name) for name in bodies})
    found = [one.asDict(recursive=True) for one in text.collect()]
    assert _comparable(found) == _comparable(exported)
    by_export = {
        (one["connection"], one["api"], one["time"] if one["exchange"] is None else one["exchange"]): one
        for one in exported
    }
    assert len(by_export) == len(found) == 14
    softwares = {one["connection"]: one["software"] for one in found}
    assert softwares == {1: "klamm-tests 1", 2: None, 3: None, 4: None}


def _comparable(found: list[dict[str, Any]]) -> list[str]:
    return sorted(
        repr({name: one[name] for name in sorted(SAME)} | {"errors": _errors(one)}) for one in found
    )


def _errors(one: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [tuple(error.values()) if isinstance(error, dict) else tuple(error) for error in one["errors"]]


def test_an_answer_waits_for_the_answers_before_it(spark: SparkSession, tmp_path: Path) -> None:
    """Two requests at once: the second answer comes 30 ms later, 20 ms of which were the first one's turn.
    Times are in whole microseconds.
    """
    talk = Talk()
    asked = {"group_id": "g", "generation_id": 1, "member_id": "m"}
    numbers = [talk.request("Heartbeat", 4, asked) for _ in range(2)]
    for number, took_ms in zip(numbers, (20.0004, 10), strict=True):
        talk.now_ms += took_ms
        talk.response("Heartbeat", 4, {"error_code": 0}, number)
    found = (
        Tables(spark, str(written(tmp_path / "a.arrow", talk.rows))).exchanges.orderBy("exchange").collect()
    )
    assert [(one.latency_ms, one.turn_ms) for one in found] == [(20, 0), (30, 20)]


def test_some_columns_of_exchanges_are_the_same_and_read_no_more(
    spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    lean = Tables(spark, str(written(tmp_path / "a.arrow", in_time(*talks()))))
    for wanted, is_decoded in (
        (["connection", "exchange", "api", "latency_ms", "turn_ms", "awaits", "response_bytes"], False),
        (["connection", "exchange", "errors", "groups"], True),
        (["connection", "exchange", "request_body", "software"], True),
    ):
        some, all_ = lean.some_exchanges(*wanted), tables.exchanges.select(*wanted)
        text = [F.to_json(name).alias(name) if name == "request_body" else name for name in wanted]
        assert some.columns == wanted
        assert _texts(some.select(*text)) == _texts(all_.select(*text))
        plan = some._jdf.queryExecution().optimizedPlan().toString()
        assert ("groups#" in plan or "body#" in plan) == is_decoded


def _texts(rows: Any) -> list[str]:
    return sorted(repr(row) for row in rows.collect())


def test_bodies_of_many_frames_are_those_of_single_ones(spark: SparkSession, tmp_path: Path) -> None:
    talk = Talk()
    for number in range(LEAST):
        topic = "orders" * (1 + number % 20)
        talk.produce(topic, bytes(number), acks=(1, -1)[number % 2]).fetch(number).heartbeat().metadata(topic)
    path = str(written(tmp_path / "a.arrow", talk.rows))
    frames = Source(spark, [path]).frames("exchange", "side", "body")
    paired, shuffled = Tables(spark, path).exchanges, Tables(spark, f"file://{path}").exchanges
    for side in ("request", "response"):
        of_side = frames.where(F.col("side") == side)
        by_one = _texts(of_side.select("exchange", F.to_json(F.parse_json("body")).alias("body")))
        for whole in (paired, shuffled):
            assert _texts(whole.select("exchange", F.to_json(f"{side}_body").alias("body"))) == by_one
    asked = parse("acks == 1 and any(len(t.partition_data) == 1 and t.name == 'orders' for t in topic_data)")
    assert paired.where(condition(asked)).count() == LEAST // 20
    assert paired.where(condition(parse("api == Fetch and max_wait_ms >= 100"))).count() == LEAST - 100


def test_without_bodies_they_are_null_and_are_decoded_for_the_apis_that_are_named(
    spark: SparkSession, tables: Tables, tmp_path: Path
) -> None:
    path = written(tmp_path / "a.arrow", in_time(*talks()))
    light = Tables(spark, str(path), bodies=False)
    assert light.exchanges.where("request_body is not null").count() == 0
    (metadata,) = light.exchanges_of("Metadata").collect()
    assert metadata.topics == ["orders"]
    acks = light.exchanges_of("Produce").selectExpr("request_body:acks::int as acks").collect()
    assert sorted(one.acks for one in acks) == [-1, 0]


def test_produce_and_fetch_are_told_by_partition(tables: Tables) -> None:
    by_acks = {one["acks"]: one for one in rows(tables, "produce")}
    known = {"topic": "orders", "partition": 3, "error": "NONE", "answered": True, "timeout_ms": 30_000}
    assert by_acks[-1] | known == by_acks[-1]
    assert by_acks[0] | {"answered": False, "error": None, "latency_ms": None} == by_acks[0]
    (named,) = rows(tables, "fetch", "topic is not null")
    assert (
        named
        | {
            "topic": "orders",
            "partition": 3,
            "fetch_offset": 0,
            "high_watermark": 1,
            "last_stable_offset": -1,
            "rack": "",
            "latency_ms": 5.0,
        }
        == named
    )
    (empty,) = rows(tables, "fetch", "topic is null")
    assert (empty["client_id"], empty["answered"], empty["session_error"]) == ("größer", False, None)


def test_members_of_groups_are_told(tables: Tables) -> None:
    (joined,) = rows(tables, "groups", "api = 'JoinGroup'")
    assert joined | {
        "group": "billing", "member_id": "m-1", "generation": 7, "leader": True, "members": 1,
        "session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000, "error": "NONE",
        "protocols": ["range", "roundrobin"],
    } == joined  # fmt: skip
    (commit,) = rows(tables, "groups", "api = 'OffsetCommit'")
    assert (commit["committed"], commit["error"]) == (1, "ILLEGAL_GENERATION")
    (committed,) = rows(tables, "commits")
    assert (committed["topic"], committed["offset"], committed["error"]) == (
        "orders",
        5,
        "ILLEGAL_GENERATION",
    )
    assert {one["error"] for one in rows(tables, "groups", "api = 'Heartbeat' and connection = 1")} == {
        "REBALANCE_IN_PROGRESS"
    }


def test_producers_and_connections_are_told(tables: Tables) -> None:
    (begun,) = rows(tables, "transactions")
    assert (
        begun["transactional_id"],
        begun["producer_id"],
        begun["producer_epoch"],
        begun["timeout_ms"],
    ) == ("t", 9, 2, 60_000)
    one, before, waiting, made = rows(tables, "connections")
    assert (one["requests"], one["responses"], one["unanswered"], one["why"]) == (9, 8, 0, "the client")
    assert (before["opened"], before["requests"], before["responses"], before["unanswered"]) == (
        None,
        1,
        2,
        0,
    )
    assert (waiting["unanswered"], waiting["why"]) == (1, "the broker")
    assert (made["requests"], made["software"]) == (1, None)


def test_where_consumers_begin_is_told(spark: SparkSession, tmp_path: Path) -> None:
    def topics(**part: int) -> list[dict[str, Any]]:
        return [{"name": "orders", "partitions": [{"partition_index": 3, **part}]}]

    talk = Talk().exchange(
        "ListOffsets", 5, {"replica_id": -1, "topics": topics(timestamp=-2)}, {"topics": topics(offset=7)}
    )
    asked = {"group_id": "billing", "topics": [{"name": "orders", "partition_indexes": [3]}]}
    talk.exchange("OffsetFetch", 5, asked, {"topics": topics(committed_offset=5)})
    found = Tables(spark, str(written(tmp_path / "a.arrow", talk.rows))).offsets.orderBy("exchange").collect()
    assert [
        (one.api, one.group, one.topic, one.partition, one.wanted, one.offset, one.error) for one in found
    ] == [
        ("ListOffsets", None, "orders", 3, -2, 7, "NONE"),
        ("OffsetFetch", "billing", "orders", 3, None, 5, "NONE"),
    ]


def test_share_groups_are_told_by_partition(spark: SparkSession, tmp_path: Path) -> None:
    """A partition is in the request alone, in the answer alone, or in both; acknowledgements have a type for
    each record, or one for all.
    """

    def of(partition: int, **values: Any) -> dict[str, Any]:
        return {"partition_index": partition, **values}

    def acknowledges(first: int, last: int, *types: int) -> dict[str, Any]:
        return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}

    def acquires(first: int, last: int, count: int) -> dict[str, Any]:
        return {"first_offset": first, "last_offset": last, "delivery_count": count}

    member = {"group_id": "billing", "member_id": "m"}
    both = of(0, acknowledgement_batches=[acknowledges(0, 9, 1), acknowledges(10, 12, 2, 3, 0)])
    asked = [{"topic_id": TOPIC_ID, "partitions": [both, of(1, acknowledgement_batches=[])]}]
    told = [
        of(0, acquired_records=[acquires(20, 24, 1), acquires(10, 10, 5)], records=b""),
        of(2, acknowledge_error_code=121, acquired_records=[], records=b""),
    ]
    talk = Talk().metadata()
    answer = {"responses": [{"topic_id": TOPIC_ID, "partitions": told}], "node_endpoints": []}
    talk.exchange("ShareFetch", 1, member | {"topics": asked}, answer)
    released = of(0, acknowledgement_batches=[acknowledges(20, 24, 2)])
    topics = [{"topic_id": TOPIC_ID, "partitions": [released]}]
    talk.exchange("ShareAcknowledge", 1, member | {"topics": topics}, {"error_code": 122})
    found = Tables(spark, str(written(tmp_path / "a.arrow", talk.rows))).shares
    sums = ("accepted", "released", "rejected", "acquired", "again", "delivery_count", "error")
    rows = [
        (one.api, one.group, one.topic, one.partition, *(one[name] for name in sums))
        for one in found.orderBy("exchange", "partition").collect()
    ]
    place = "billing", "orders"
    assert rows == [
        ("ShareFetch", *place, 0, 10, 1, 1, 6, 1, 5, "NONE"),
        ("ShareFetch", *place, 1, 0, 0, 0, 0, 0, None, "NONE"),
        ("ShareFetch", *place, 2, 0, 0, 0, 0, 0, None, "INVALID_RECORD_STATE"),
        ("ShareAcknowledge", *place, 0, 0, 5, 0, 0, 0, None, "SHARE_SESSION_NOT_FOUND"),
    ]


def test_metadata_tells_who_leads_what(spark: SparkSession, tmp_path: Path) -> None:
    parts = [
        {
            "error_code": 0,
            "partition_index": 0,
            "leader_id": 2,
            "leader_epoch": 5,
            "replica_nodes": [1, 2],
            "isr_nodes": [2],
        }
    ]
    topics = [
        {"name": "orders", "topic_id": TOPIC_ID, "error_code": 0, "partitions": parts},
        {"name": "gone", "topic_id": bytes(16), "error_code": 3, "partitions": []},
    ]
    brokers = [{"node_id": node_id, "host": "h", "port": 1, "rack": f"zone-{node_id}"} for node_id in (1, 2)]
    talk = Talk().exchange("Metadata", 12, {"topics": None}, {"brokers": brokers, "topics": topics})
    led, gone = (
        Tables(spark, str(written(tmp_path / "a.arrow", talk.rows))).metadata.orderBy("error").collect()
    )
    assert (led.topic, led.partition, led.leader, led.leader_epoch, led.replicas, led.isr) == (
        "orders",
        0,
        2,
        5,
        2,
        1,
    )
    assert (led.in_sync, led.leader_rack, led.leader_address) == ([2], "zone-2", "h:1")
    assert (gone.in_sync, gone.leader_rack, gone.leader_address) == (None, None, None)
    assert led.topic_id == "AAECAwQFBgcICQoLDA0ODw"
    assert (gone.topic, gone.partition, gone.error, gone.auto_create) == (
        "gone",
        None,
        "UNKNOWN_TOPIC_OR_PARTITION",
        True,
    )


def test_every_table_has_the_columns_that_are_written_of_it(tables: Tables) -> None:
    for name, table in TABLES.items():
        if name != "findings":
            found = dict(getattr(tables, name).dtypes)
            columns_written = {
                column.name: column.type.replace(": ", ":").replace(", ", ",") for column in table.columns
            }
            assert found == columns_written, name


def test_times_are_those_of_the_capture(tables: Tables) -> None:
    first = tables.exchanges.agg(F.min(F.unix_micros("time")).alias("first")).collect()[0].first
    assert (
        first * 1000
        == min(row.time_ns for talk in talks() for row in talk.rows if row.kind == "frame") // MS * MS
    )


def test_an_executor_holds_one_fetched_segment_at_a_time(tmp_path: Path) -> None:
    segment = written(tmp_path / "a.arrow", in_time(*talks())).read_bytes()
    files = {"path": ["s3a://b/1.arrow", "s3a://b/2.arrow"], "content": [segment] * 2}
    held: list[list[str]] = []

    def read(part: Part) -> Iterator[pa.RecordBatch]:
        held.append([file.name for file in Path(part.path).parent.iterdir()])
        yield from ()

    assert list(_unpack(read, [pa.RecordBatch.from_pydict(files)])) == []
    assert held == [["1.arrow"], ["2.arrow"]]


def test_captures_at_urls_are_read_by_the_file_systems_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path / "a.arrow", in_time(*talks()))
    (tmp_path / "b.arrow").write_bytes(b"something else entirely")
    (tmp_path / "c.arrow.growing").write_bytes(b"not sealed")
    remote, local = Tables(spark, f"file://{tmp_path}"), Tables(spark, str(tmp_path / "a.arrow"))
    assert sorted(map(repr, remote.produce.collect())) == sorted(map(repr, local.produce.collect()))
    (fault,) = remote.some_frames("kind", "text").where("kind = 'lost'").collect()
    assert "b.arrow: no segment of a capture" in fault.text
