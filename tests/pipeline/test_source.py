"""The Data Source `klamm`: what it gives is what the capture has."""

import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from klamm.captures.storage.reading import read
from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import Writer, write_file
from klamm.decoders import API
from tests.brokers.processes import wait_for
from tests.captures.rows import START_NS, Talk, connection, in_time, lost, written
from tests.captures.stored_rows import ORIGIN, any_rows

HEADERS = "connection bigint, exchange bigint, kind string, side string, api string, time_ns bigint"


def load(spark: SparkSession, path: Path, ddl: str = HEADERS, **options: str) -> DataFrame:
    return spark.read.format("klamm").schema(ddl).options(**options).load(str(path))


def test_every_row_of_a_capture_is_a_row_of_the_table(spark: SparkSession, tmp_path: Path) -> None:
    write_file(tmp_path / "a.arrow", any_rows(1000, seed=1), ORIGIN)
    found = load(
        spark, tmp_path,
        "time_ns bigint, kind string, connection bigint, client string, side string, api_key smallint, "
        "version smallint, client_id string, exchange bigint, bytes bigint, fate string, awaits boolean, "
        "lost bigint, text string",
    ).collect()  # fmt: skip
    expected = [
        (
            row.time_ns, row.kind, row.connection and row.connection.number,
            row.connection and row.connection.client, row.side, _known(row.api_key), _known(row.api_version),
            row.client_id, _known(row.exchange), row.size + 4 * (row.kind in ("frame", "token")), row.fate,
            row.awaits, row.lost, row.text,
        )
        for row in read(tmp_path)
    ]  # fmt: skip
    assert Counter(map(repr, map(tuple, found))) == Counter(map(repr, expected))


def _known(number: int) -> int | None:
    return None if number < 0 else number


def test_bodies_are_json_or_typed_by_the_wire_tables(spark: SparkSession, tmp_path: Path) -> None:
    talk = Talk().metadata("größer").produce("orders")
    talk.heartbeat(error_code=27)
    written(tmp_path / "a.arrow", talk.rows)
    ddl = (
        "api string, side string, topics array<string>, groups array<string>, body string, "
        "errors array<struct<code: smallint, name: string, count: int>>"
    )
    rows = load(spark, tmp_path, ddl).collect()
    by = {(row.api, row.side): row for row in rows}
    assert by["Metadata", "response"].topics == ["größer"]
    assert by["Heartbeat", "request"].groups == ["billing"]
    assert [tuple(error) for error in by["Heartbeat", "response"].errors] == [
        (27, "REBALANCE_IN_PROGRESS", 1)
    ]
    assert '"acks":-1' in by["Produce", "request"].body
    typed = spark.read.format("klamm").option("api", "Produce").load(str(tmp_path)).collect()
    assert [(row.body.acks, row.body.topic_data[0].name, row.body.timeout_ms) for row in typed] == [
        (-1, "orders", 30_000)
    ]


def test_conditions_that_skip_segments_change_no_result(spark: SparkSession, tmp_path: Path) -> None:
    talk = Talk().heartbeat().produce().metadata().heartbeat()
    other = Talk(connection(2), client_id="other").produce()
    written(tmp_path / "a.arrow", in_time(talk, other))
    all_rows = load(spark, tmp_path, HEADERS + ", client_id string, time timestamp")
    kept = [row.asDict() for row in all_rows.collect()]
    middle = datetime.fromtimestamp(START_NS / 1e9 + 0.0015, UTC).replace(tzinfo=None)
    conditions: dict[str, Any] = {
        "api = 'Produce'": lambda row: row["api"] == "Produce",
        "api in ('Produce', 'Metadata') and side = 'request'": lambda row: (
            row["api"] in ("Produce", "Metadata") and row["side"] == "request"
        ),
        "api > 'P'": lambda row: (row["api"] or "") > "P",
        "client_id = 'other'": lambda row: row["client_id"] == "other",
        "client_id > 'b' and connection >= 2": lambda row: row["connection"] >= 2,
        f"time >= timestamp '{middle}'": lambda row: row["time"] >= middle,
        f"time < timestamp '{middle}' and not api = 'Produce'": lambda row: (
            row["time"] < middle and row["api"] != "Produce"
        ),
    }
    for condition, holds in conditions.items():
        found = [row.asDict() for row in all_rows.where(condition).collect()]
        wanted = [row for row in kept if holds(row)]
        assert sorted(map(repr, found)) == sorted(map(repr, wanted)), condition
        assert 0 < len(wanted) < len(kept), condition


def test_what_is_damaged_or_lost_is_a_row_and_the_rest_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = [row for talk in [Talk().heartbeat().heartbeat()] for row in talk.rows]
    written(tmp_path / "a.arrow", [*rows, lost(7)])
    (tmp_path / "b.arrow").write_bytes(b"something else entirely")
    whole = written(tmp_path / "c.arrow", rows).read_bytes()
    at = whole.index(b"billing")
    (tmp_path / "c.arrow").write_bytes(whole[:at] + b"BILLING" + whole[at + 7 :])
    found = load(spark, tmp_path, "kind string, text string, lost bigint")
    problems = {
        (Path(row.text.split(":")[0]).name, row.lost) for row in found.where("kind = 'lost'").collect()
    }
    assert problems == {("the disk is slow", 7), ("b.arrow", 0)}
    with_bodies = load(spark, tmp_path, "kind string, text string, lost bigint, body string")
    lost_rows = {row.text: row.lost for row in with_bodies.where("kind = 'lost'").collect()}
    (damaged,) = [text for text in lost_rows if "is damaged" in text]
    assert "c.arrow: batch 1" in damaged
    assert lost_rows[damaged] == 4
    assert with_bodies.where("body is not null").count() == 4


def test_an_option_that_names_no_api_is_a_clear_error(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"api='Produse', side='request' names no API's request or response"):
        spark.read.format("klamm").option("api", "Produse").load(str(tmp_path)).count()


STREAM = """
import sys
from klamm.pipeline.spark import session
from klamm.pipeline.tables import quick
spark = session("local[1]", **quick.SETTINGS, **quick.BRIEF_JVM)
read = spark.readStream.format("klamm").schema({ddl!r}).load(sys.argv[1])
written = read.writeStream.format("parquet").option("checkpointLocation", sys.argv[3])
written.start(sys.argv[2]).awaitTermination()
"""


def test_a_stream_that_is_killed_and_started_again_gives_each_frame_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    capture, out, checkpoint = tmp_path / "capture", tmp_path / "out", tmp_path / "checkpoint"
    capture.mkdir()
    writer, talk = Writer(capture, Origin("a")), Talk()

    def more(count: int) -> None:
        for _ in range(count):
            talk.heartbeat()
        writer.write(talk.rows)
        talk.rows = []
        writer.flush()

    more(50)
    command = [sys.executable, "-c", STREAM.format(ddl=HEADERS), str(capture), str(out), str(checkpoint)]
    child = subprocess.Popen(command, stderr=subprocess.PIPE)
    try:
        wait_for(
            lambda: (out / "_spark_metadata" / "0").exists(),
            "the first batch of the stream",
            [],
            timeout_s=120,
        )
        for _ in range(5):
            more(20)
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    more(30)
    writer.seal()
    more(10)
    query = (
        spark.readStream.format("klamm").schema(HEADERS).load(str(capture))
        .writeStream.format("parquet").option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True).start(str(out))
    )  # fmt: skip
    query.awaitTermination()
    writer.seal()
    found = Counter((row.exchange, row.side) for row in spark.read.parquet(str(out)).collect())
    assert found == Counter((number, side) for number in range(190) for side in ("request", "response"))
    assert API["Heartbeat"].name in {
        row.api for row in spark.read.parquet(str(out)).select("api").distinct().collect()
    }
