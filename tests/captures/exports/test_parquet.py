"""The table `exchanges` in a Parquet file, as DuckDB and pyarrow read it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet

from klamm.captures.captured import Captured
from klamm.captures.choosing import chosen
from klamm.captures.exchanges import exchanges
from klamm.captures.exports import parquet as written
from klamm.captures.exports.exchange_schema import COLUMNS, schema
from klamm.captures.exports.parquet import write
from tests.captures.rows import START_NS, Talk, connection

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "export.md"
# The columns of released versions: they stay, in this order. A release adds its new columns here.
RELEASED = (
    ("capture", "string"),
    ("connection", "int64"),
    ("exchange", "int64"),
    ("time", "timestamp[us, UTC]"),
    ("time_ns", "int64"),
    ("latency_ns", "int64"),
    ("cluster", "string"),
    ("broker", "string"),
    ("client", "string"),
    ("client_id", "string"),
    ("api", "string"),
    ("api_key", "int16"),
    ("version", "int16"),
    ("correlation_id", "int32"),
    ("request_bytes", "int64"),
    ("response_bytes", "int64"),
    ("awaits", "boolean"),
    ("answered", "boolean"),
    ("request_fate", "string"),
    ("response_fate", "string"),
    ("topics", "list<string>"),
    ("groups", "list<string>"),
    ("errors", "list<struct<code: int16, name: string, count: int32>>"),
    ("request_body", "string"),
    ("response_body", "string"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "exchanges.parquet"


def export(rows: Iterable[Captured], file: Path, bodies: bool = True) -> int:
    with open(file, "wb") as opened:
        return write(chosen(exchanges(rows)), opened, bodies)


def ask(file: Path, what: str, rest: str = "") -> list[tuple[Any, ...]]:
    found = duckdb.sql(f"select {what} from '{file}' {rest}").fetchall()
    assert isinstance(found, list)
    return found


def test_a_row_says_what_is_known_of_an_exchange(file: Path) -> None:
    assert export(Talk(connection(4, "controller 1", run="monday")).metadata().heartbeat(25).rows, file) == 2
    rest = "where api = 'Heartbeat'"
    whose = "capture, connection, exchange, cluster, broker, client, client_id"
    assert ask(file, whose, rest) == [("monday", 4, 1, "main", "controller 1", "10.0.0.7:50000", "app")]
    columns = "api_key, version, correlation_id, request_bytes, response_bytes, awaits, answered"
    assert ask(file, columns, rest) == [(12, 4, 1, 34, 16, True, True)]
    assert ask(file, "request_fate, response_fate", rest) == [("passed", "passed")]
    assert ask(file, "epoch_us(time), time_ns, latency_ns", rest) == [
        (START_NS // 1000 + 1000, START_NS + 1_000_000, 1_000_000)
    ]
    assert ask(file, "topics, groups, errors", rest) == [
        ([], ["billing"], [{"code": 25, "name": "UNKNOWN_MEMBER_ID", "count": 1}])
    ]


def test_bodies_are_asked_as_json(file: Path) -> None:
    export(Talk().produce(acks=-1).produce(acks=0).produce(records=b"v" * 20, acks=0).fetch().rows, file)
    acks = ask(
        file,
        "(request_body->>'$.acks')::int as acks, count(*)",
        "where api = 'Produce' group by 1 order by 1",
    )
    assert acks == [(-1, 1), (0, 2)]
    sizes = "request_body->'$.topic_data[0].partition_data[0].records.bytes'"
    assert ask(file, sizes, "where api = 'Produce' order by exchange") == [("0",), ("0",), ("20",)]


def test_topics_of_which_only_the_id_is_on_the_wire_have_the_name_that_was_told(file: Path) -> None:
    export(Talk().fetch().metadata().fetch().rows, file)
    assert ask(file, "api, topics", "order by exchange") == [
        ("Fetch", []),
        ("Metadata", ["orders"]),
        ("Fetch", ["orders"]),
    ]


def test_what_is_not_known_is_null(file: Path) -> None:
    asked, answered = Talk().heartbeat().rows
    unanswered = asked._replace(connection=connection(2), client_id=None)
    unasked = answered._replace(
        connection=connection(3), api_key=-1, api_version=-1, exchange=-1, client_id=None
    )
    bodiless = [row._replace(connection=connection(4), frame=None) for row in (asked, answered)]
    unheard = [row._replace(connection=connection(5), api_key=9999) for row in (asked, answered)]
    export([unanswered, unasked, *bodiless, *unheard], file)
    columns = (
        "api, api_key, version, exchange, client_id, latency_ns, request_bytes, response_bytes, answered"
    )
    bodies = "request_body is null, response_body is null"
    assert ask(file, f"connection, {columns}, {bodies}", "order by connection") == [
        (2, "Heartbeat", 12, 4, 0, None, None, 34, None, False, False, True),
        (3, None, None, None, None, None, None, None, 16, True, True, True),
        (4, "Heartbeat", 12, 4, 0, "app", 1_000_000, 34, 16, True, True, True),
        (5, None, 9999, 4, 0, "app", 1_000_000, 34, 16, True, True, True),
    ]


def test_bytes_that_are_no_text_are_told_as_such(file: Path) -> None:
    name = b"caf\xc3\xa9\xff".decode("utf-8", "surrogateescape")
    export(Talk(client_id=name).heartbeat(group=name).rows, file)
    assert ask(file, "client_id, groups") == [("café\\udcff", ["café\\udcff"])]


def test_bodies_can_be_left_out(file: Path) -> None:
    export(Talk().produce().rows, file, bodies=False)
    assert ask(file, "topics, request_body, response_body") == [(["orders"], None, None)]


def test_a_capture_without_exchanges_is_a_table_without_rows(file: Path) -> None:
    assert export([], file) == 0
    assert ask(file, "count(*)") == [(0,)]
    assert parquet.read_schema(file).equals(schema())


def test_rows_are_written_as_they_come(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "GROUP_ROWS", 10)
    monkeypatch.setattr(written, "GROUP_BYTES", 5000)
    talk = Talk()
    for _ in range(25):
        talk.heartbeat()
    talk.produce("t" * 5000).heartbeat()
    assert export(talk.rows, file) == 27
    read = parquet.ParquetFile(file).metadata
    assert [read.row_group(group).num_rows for group in range(read.num_row_groups)] == [10, 10, 6, 1]
    assert ask(file, "exchange", "order by time_ns") == [(number,) for number in range(27)]


def test_the_guide_lists_the_columns() -> None:
    table = GUIDE.read_text().partition("| column |")[2].splitlines()[2:]
    assert table == [
        f"| `{column.name}` | `{column.type}` | {column.about} | {column.null} |" for column in COLUMNS
    ]


def test_columns_keep_their_names_and_types_and_new_ones_come_at_the_end() -> None:
    assert tuple((column.name, column.type) for column in COLUMNS)[: len(RELEASED)] == RELEASED


def test_a_column_is_null_only_where_the_schema_says_so(file: Path) -> None:
    export(Talk().metadata().produce(acks=0).heartbeat(25).rows, file)
    table = parquet.read_table(file)
    assert [field.name for field in table.schema if not field.nullable and table[field.name].null_count] == []
    assert table.schema.equals(schema())
