"""Tables written as Parquet run by run, judged by the tables of the whole capture."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from klamm.captures.captured import Captured
from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import Writer
from klamm.pipeline.tables import Tables, store
from klamm.pipeline.tables.store import stored, write
from tests.captures.rows import TOPIC_ID, Talk, connection

FOREVER = 1e9  # seconds: an answer to captures of these tests may still come
TABLES = ("frames", "exchanges", "fetch")
FETCH = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": 9}
ASKED = {**FETCH, "topics": [{"topic_id": TOPIC_ID, "partitions": [{"partition": 3, "fetch_offset": 7}]}]}
PARTITION = {"partition_index": 3, "error_code": 0, "high_watermark": 9, "records": b""}
TOLD = {"responses": [{"topic_id": TOPIC_ID, "partitions": [PARTITION]}]}
SOFTWARE = {"client_software_name": "klamm-tests", "client_software_version": "1"}


class Capture:
    """One that grows: `more` is in it with the next batch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer = Writer(folder, Origin("a"))

    def more(self, *talks: Talk) -> None:
        rows: list[Captured] = [row for talk in talks for row in talk.rows]
        for talk in talks:
            talk.rows.clear()
        self._writer.write(sorted(rows, key=lambda row: row.time_ns))
        self._writer.flush()

    def sealed(self) -> None:
        self._writer.seal()


def rows_of(table: DataFrame) -> list[Any]:
    """In an order of their own, VARIANT as text."""
    as_text = {name: F.to_json(name) for name, kind in table.dtypes if kind == "variant"}
    found = table.withColumns(as_text).drop("day").toArrow().to_pylist()
    return sorted(found, key=repr)


def test_halves_of_exchanges_that_lie_in_two_runs_are_one_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture, out = Capture(tmp_path / "capture"), tmp_path / "tables"
    one, other = Talk(connection(1)), Talk(connection(2, client="10.0.0.8:50000"))
    one.opened().exchange("ApiVersions", 3, SOFTWARE, {"error_code": 0, "api_keys": []}).metadata()
    waiting = one.request("Fetch", 15, ASKED)
    other.heartbeat().produce(acks=0)
    capture.more(one, other)
    first = write(spark, str(capture.folder), out, TABLES, wait_s=FOREVER)
    assert first == {"frames": 9, "exchanges": 4, "fetch": 0}
    assert write(spark, str(capture.folder), out, TABLES, wait_s=FOREVER) == dict.fromkeys(TABLES, 0)

    behind = one.request("Heartbeat", 4, {"group_id": "billing", "generation_id": 1, "member_id": "m"})
    one.now_ms = other.now_ms = 400
    one.response("Fetch", 15, TOLD, waiting)
    one.response("Heartbeat", 4, {"error_code": 0}, behind)
    other.heartbeat().request("Fetch", 15, ASKED)
    capture.more(one, other)
    with monkeypatch.context() as killed:
        killed.setattr(store, "_commit", _killed)
        with pytest.raises(KeyboardInterrupt):
            write(spark, str(capture.folder), out, TABLES, wait_s=FOREVER)
    assert stored(spark, out, "exchanges").count() == 4
    other.now_ms = 500
    other.closed()
    one.fetch()
    capture.more(one, other)
    capture.sealed()
    assert write(spark, str(capture.folder), out, TABLES, wait_s=FOREVER) == {
        "frames": 9,
        "exchanges": 5,
        "fetch": 3,
    }

    whole = Tables(spark, str(capture.folder))
    assert rows_of(stored(spark, out, "exchanges")) == rows_of(whole.exchanges)
    assert rows_of(stored(spark, out, "fetch")) == rows_of(whole.fetch)
    assert stored(spark, out, "frames").count() == 18


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_request_that_waited_long_enough_is_unanswered_and_its_answer_is_left_out(
    spark: SparkSession, tmp_path: Path
) -> None:
    capture, out, only = Capture(tmp_path / "capture"), tmp_path / "tables", ("exchanges",)
    talk = Talk().metadata()
    waiting = talk.request("Fetch", 15, ASKED)
    capture.more(talk)
    assert write(spark, str(capture.folder), out, only, bodies="json", wait_s=FOREVER) == {"exchanges": 1}
    assert write(spark, str(capture.folder), out, only, bodies="json", wait_s=0) == {"exchanges": 1}
    talk.response("Fetch", 15, TOLD, waiting)
    capture.more(talk.heartbeat())
    assert write(spark, str(capture.folder), out, only, bodies="json", wait_s=0) == {"exchanges": 1}
    most = F.get_json_object("request_body", "$.max_bytes")
    capture.sealed()
    found = stored(spark, out, "exchanges").select("api", "answered", "topics", most)
    assert sorted(map(tuple, found.collect())) == [
        ("Fetch", False, ["orders"], "9"),
        ("Heartbeat", True, [], None),
        ("Metadata", True, ["orders"], None),
    ]
    assert (out / "exchanges/run=2/api=Fetch/day=2023-11-14").is_dir()


def test_what_a_directory_does_not_hold_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    capture, out = Capture(tmp_path / "capture"), tmp_path / "tables"
    with pytest.raises(ValueError, match="has no table produce; known are none"):
        stored(spark, out, "produce")
    with pytest.raises(
        ValueError, match="the table connections is not written; known are frames, exchanges, "
    ):
        write(spark, str(capture.folder), out, ["connections"])
    with pytest.raises(ValueError, match="bodies='text': must be 'variant' or 'json'"):
        write(spark, str(capture.folder), out, bodies="text")
    with pytest.raises(ValueError, match="s3a://captures/: no folder that is seen here"):
        write(spark, "s3a://captures/", out)
    capture.more(Talk().metadata())
    write(spark, str(capture.folder), out, ["metadata"])
    capture.sealed()
    with pytest.raises(
        ValueError, match="is written with metadata, with bodies as variant: ask for the same"
    ):
        write(spark, str(capture.folder), out, ["produce"])
