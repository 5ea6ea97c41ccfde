"""`klamm export` on captures, from one end to the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

import klamm.captures
from klamm.captures.captured import Captured
from klamm.captures.storage.segments import origin
from klamm.captures.storage.writing import write_file
from klamm.cli import main
from klamm.client.types import Exchange
from klamm.settings.extras import installing
from tests.captures.rows import Talk, connection, in_time
from tests.captures.tshark import messages


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Two connections: one with errors, one to a broker whose address is known."""
    first = (
        Talk(connection(1)).opened().heartbeat().heartbeat(25).produce(records=b"r" * 10, version=8).closed()
    )
    second = Talk(connection(2, "10.0.0.8:19092")).opened().heartbeat()
    return kept(tmp_path / "capture", in_time(first, second))


def kept(folder: Path, rows: list[Captured]) -> Path:
    folder.mkdir()
    write_file(folder / "one.arrow", rows, origin())
    return folder


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def run(*words: str | Path) -> int:
    return main(["export", *map(str, words)])


def test_the_suffix_says_the_form(capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summaries = {}
    for suffix in ("pcapng", "jsonl", "parquet"):
        file = tmp_path / f"exported.{suffix}"
        assert run(capture, "-o", file) == 0
        summaries[suffix] = capsys.readouterr().out.removeprefix(f"{file}: ")
    assert summaries == {
        "pcapng": "8 frames; tshark and Wireshark need -d tcp.port==19092,kafka\n",
        "jsonl": "4 exchanges\n",
        "parquet": "4 exchanges\n",
    }
    assert len(messages(tmp_path / "exported.pcapng", "-d", "tcp.port==19092,kafka")) == 8
    assert len(lines((tmp_path / "exported.jsonl").read_text())) == 4
    assert duckdb.sql(f"select count(*) from '{tmp_path / 'exported.parquet'}'").fetchall() == [(4,)]


@pytest.mark.parametrize("suffix", ["pcapng", "jsonl", "parquet"])
def test_nothing_found_is_said(
    capture: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capture, 'group == "nosuch"', "-o", tmp_path / f"exported.{suffix}") == 0
    assert capsys.readouterr().err == "klamm: 0 of 4 exchanges matched\n"


def test_format_goes_before_the_suffix(capture: Path, tmp_path: Path) -> None:
    assert run(capture, "-o", tmp_path / "exported.log", "--format", "jsonl") == 0
    assert len(lines((tmp_path / "exported.log").read_text())) == 4


def test_json_lines_are_exchanges_as_klamm_tail_tells_them(capture: Path, tmp_path: Path) -> None:
    file = tmp_path / "exported.jsonl"
    assert run(capture, "api == Produce", "-o", file) == 0
    (found,) = lines(file.read_text())
    exchange = msgspec.convert(found, Exchange)
    assert (exchange.api, exchange.version, exchange.correlation_id, exchange.topics) == (
        "Produce",
        8,
        2,
        {"orders": [3]},
    )
    assert exchange.request is not None
    assert exchange.request.values is not None
    assert exchange.request.values["topic_data"][0]["partition_data"] == [
        {"index": 3, "records": {"bytes": 10}}
    ]
    assert found.keys() <= {field.name for field in msgspec.structs.fields(Exchange)}


@pytest.mark.parametrize(
    ("bodies", "expected"),
    [("none", None), ("values", {"throttle_time_ms": 0, "error_code": 25}), ("raw", "AAAAAAAZAA==")],
)
def test_bodies_are_told_as_asked(bodies: str, expected: object, capture: Path, capfdbinary: Any) -> None:
    assert run(capture, "error != NONE", "-o", "-", "--bodies", bodies) == 0
    (found,) = lines(capfdbinary.readouterr().out.decode())
    response = found.get("response")
    assert (response and response["raw" if bodies == "raw" else "values"]) == expected


def test_an_expression_chooses_in_every_form(capture: Path, tmp_path: Path) -> None:
    for suffix in ("pcapng", "jsonl", "parquet"):
        assert run(capture, "error == UNKNOWN_MEMBER_ID", "-o", tmp_path / f"chosen.{suffix}") == 0
    assert [message.correlation_id for message in messages(tmp_path / "chosen.pcapng")] == [1, 1]
    assert [one["correlation_id"] for one in lines((tmp_path / "chosen.jsonl").read_text())] == [1]
    chosen = duckdb.sql(f"select correlation_id from '{tmp_path / 'chosen.parquet'}'").fetchall()
    assert chosen == [(1,)]


def test_several_captures_are_one(capture: Path, tmp_path: Path, capfdbinary: Any) -> None:
    other = kept(tmp_path / "other", Talk(connection(1, run="b")).metadata().rows)
    assert run(capture, other, "-o", "-") == 0
    assert len(lines(capfdbinary.readouterr().out.decode())) == 5


def test_packets_are_those_that_one_end_saw(tmp_path: Path) -> None:
    asked, answered = Talk().heartbeat().rows
    _, refused = Talk().heartbeat(25).rows
    forwarded = refused.frame
    capture = kept(tmp_path / "capture", [asked, answered._replace(fate="rewritten", forwarded=forwarded)])
    for who, error in (("client", "25"), ("broker", "0")):
        file = tmp_path / f"{who}.pcapng"
        assert run(capture, "-o", file, "--seen-by", who) == 0
        command = ["tshark", "-r", str(file), "-T", "fields", "-e", "kafka.error", "-Y", "kafka.response_key"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.strip() == error


def test_packets_can_go_without_bodies(tmp_path: Path) -> None:
    capture = kept(tmp_path / "capture", Talk().heartbeat(group="secret-group").rows)
    assert run(capture, "-o", tmp_path / "bare.pcapng", "--bodies", "none") == 0
    assert b"secret-group" not in (tmp_path / "bare.pcapng").read_bytes()
    assert [message.correlation_id for message in messages(tmp_path / "bare.pcapng")] == [0, 0]


def test_packets_go_to_standard_output_too(capture: Path, tmp_path: Path, capfdbinary: Any) -> None:
    assert run(capture, "-o", tmp_path / "file.pcapng") == 0
    capfdbinary.readouterr()
    assert run(capture, "-o", "-", "--format", "pcapng") == 0
    assert capfdbinary.readouterr().out == (tmp_path / "file.pcapng").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "exported.txt"], "-o exported.txt: end it in .pcapng, .jsonl, .parquet, or say --format"),
        (["-o", "-", "--format", "parquet"], "-o -: Parquet needs a file"),
        (["-o", "a.parquet", "--bodies", "raw"], "--bodies raw is for jsonl, not for parquet"),
        (["-o", "a.jsonl", "--seen-by", "broker"], "--seen-by is for pcapng, not for jsonl"),
    ],
)
def test_words_that_do_not_fit_are_refused(
    words: list[str], message: str, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capture, *words) == 2
    assert capsys.readouterr().err == f"klamm: {message}\n"


def test_a_wrong_expression_and_a_missing_capture_are_said(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capture, "api ==", "-o", tmp_path / "a.jsonl") == 2
    assert run(tmp_path / "nothing", "-o", tmp_path / "a.jsonl") == 2
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert str(tmp_path / "nothing") in errors
    assert not (tmp_path / "a.jsonl").exists()


def test_what_is_damaged_is_said_and_the_rest_is_written(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (capture / "two.arrow").write_bytes(b"no segment at all")
    assert run(capture, "-o", tmp_path / "a.jsonl") == 1
    assert "two.arrow" in capsys.readouterr().err
    assert len(lines((tmp_path / "a.jsonl").read_text())) == 4


@pytest.mark.parametrize("form", ["pcapng", "jsonl", "parquet"])
def test_a_file_that_cannot_be_written_is_said_and_is_not_there(
    form: str, capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capture, "-o", "/dev/full", "--format", form) == 1
    assert capsys.readouterr().err == "klamm: /dev/full: No space left on device\n"
    assert run(capture, "-o", tmp_path / "no" / f"folder.{form}") == 1
    assert run(capture, "-o", tmp_path, "--format", form) == 1
    errors = capsys.readouterr().err.splitlines()
    assert errors == [
        f"klamm: {tmp_path / 'no' / f'folder.{form}'}: No such file or directory",
        f"klamm: {tmp_path}: Is a directory",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["capture"]


def test_a_file_keeps_its_name_for_what_is_whole(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "exported.jsonl"
    file.write_text("before")
    monkeypatch.setattr("klamm.cli.captures.show_exchange.as_object", interrupted)
    assert run(capture, "-o", file) == 130
    assert file.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["capture", "exported.jsonl"]


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_reader_that_has_enough_is_no_failure(capture: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "klamm.cli", "export", str(capture), "-o", "-"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_sees_how_far_it_is_and_a_file_does_not(capture: Path, tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "klamm.cli", "export", str(capture), "-o", "-"]
    env = {**os.environ, "TERM": "xterm"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, env=env, timeout=60, check=True)
    os.close(theirs)
    with open(ours, "rb", buffering=0) as terminal:
        assert b"reading" in terminal.read(1000)
    assert len(lines(done.stdout.decode())) == 4


def test_packets_are_not_for_a_terminal(capture: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "klamm.cli", "export", str(capture), "-o", "-", "--format", "pcapng"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(theirs)
    os.close(ours)
    assert (done.returncode, done.stderr) == (2, b"klamm: -o -: packets are not for a terminal\n")


def test_without_pyarrow_it_says_what_to_install(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("pyarrow", "klamm.captures"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("klamm.captures", klamm.captures)  # as a name it is imported anew, too
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(capture, "-o", tmp_path / "a.jsonl") == 1
    assert capsys.readouterr().err == f"klamm: klamm export needs pyarrow: {installing('capture')}\n"
