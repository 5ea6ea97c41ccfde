"""`klamm analyze --tables`: what DuckDB and pandas read is what is in the captures."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import Writer
from klamm.cli import main
from klamm.cli.analyze.tables import told
from klamm.pipeline.detectors.finding import Findings
from klamm.pipeline.detectors.registry import DETECTORS
from klamm.pipeline.report.gathering import Traffic
from klamm.pipeline.report.report import Report
from klamm.pipeline.tables.store import WRITTEN
from tests.captures.made_traffic import batch
from tests.captures.rows import Talk, connection, written
from tests.docs.blocks import blocks

(PROGRAM,) = (each.text for each in blocks() if (each.page, each.language) == ("docs/analyze.md", "python"))
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No detector is asked: that takes longer than the tables."""

    def reported(_: object, paths: list[str], *__: object) -> Report:
        return Report(paths, Traffic(), Findings(), DETECTORS)

    monkeypatch.setattr("klamm.pipeline.report.reporting.reported", reported)


def analyzed(capsys: Printed, *words: str) -> tuple[int, list[str]]:
    """The exit code, and the lines that were printed."""
    code = main(["analyze", *words])
    return code, capsys.readouterr().out.splitlines()


def test_duckdb_and_pandas_read_the_tables_of_a_capture_and_later_what_is_new(
    spark: SparkSession, quick: None, tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture, tables = tmp_path / "capture", tmp_path / "tables"
    talk, writer = Talk(connection(1), "app").opened(), Writer(capture, Origin("a"))
    writer.write(talk.produce(records=batch()).produce(records=batch()).metadata().rows)
    writer.flush()
    code, out = analyzed(capsys, str(capture), "--tables", str(tables))
    assert (code, out[-1]) == (
        0,
        f"tables: {tables}, 7 frames, 3 exchanges, 2 produce, 2 batches, 1 metadata",
    )
    assert {path.name for path in tables.iterdir()} == {*WRITTEN, "ledger"}
    monkeypatch.chdir(tmp_path)
    imports, _, asked = PROGRAM.partition("\n\n")
    names: dict[str, Any] = {}
    exec(imports, names)  # noqa: S102
    sums, acks, p99 = (eval(each, names) for each in asked.splitlines())  # noqa: S307
    assert sums.fetchall() == [("app", "orders", 2 * len(batch()))]
    assert acks.fetchall() == [("-1",)]
    assert p99.to_dict() == {"Metadata": 1.0, "Produce": 1.0}

    talk.rows.clear()
    writer.write(talk.produce().rows)
    writer.seal()
    other_path = tmp_path / "tables" / ".." / "capture"
    code, (line,) = analyzed(capsys, str(other_path), "--tables", str(tables), "--json")
    assert (code, json.loads(line)["captures"]) == (0, [str(other_path)])
    assert len(names["pandas"].read_parquet(tables / "produce")) == 3


def test_where_nothing_is_new_it_says_so() -> None:
    assert told({"frames": 0, "exchanges": 0}) == "nothing new"


def test_what_cannot_be_written_as_tables_is_said_before_spark_starts(
    tmp_path: Path, capsys: Printed
) -> None:
    written(tmp_path / "a.arrow", Talk().produce().rows)
    (tmp_path / "file").touch()
    capture, folder = str(tmp_path / "a.arrow"), str(tmp_path / "tables")
    for words, reason, expected in (
        ([capture, "acks == 1", "--tables", folder], "--tables writes all exchanges: leave out EXPR", 2),
        ([capture, "--follow", "--tables", folder], "--follow writes no tables: leave out --tables", 2),
        (
            ["s3a://logs/a", "--tables", folder],
            "--tables reads captures of this machine, and s3a://logs/a",
            2,
        ),
        ([capture, "--tables", str(tmp_path / "file")], f"{tmp_path / 'file'}: File exists", 1),
    ):
        code = main(["analyze", *words])
        assert (code, reason in capsys.readouterr().err) == (expected, True), words
