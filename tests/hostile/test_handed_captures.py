"""Captures of others, with right checksums and wrong contents: a line each, and no traceback."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from klamm.captures.captured import Captured, CapturedConnection
from klamm.captures.storage import growing
from klamm.captures.storage.arrow import encoding
from klamm.captures.storage.checksums import crc32c
from klamm.captures.storage.leftovers import seal_leftovers
from klamm.captures.storage.segments import CHECKSUM, KEY, Origin, Statistics, Summary, origin, to_metadata
from klamm.captures.storage.writing import write_file
from klamm.cli import main

ESCAPES = "\x1b]0;title\x07\x1b[31m"
CONNECTION = CapturedConnection("capture", 1, "kafka", "1", "127.0.0.1:1")
FRAME = Captured(
    10**18, "frame", CONNECTION, "request", 12, 4, 1, "app", 0, 8, bytes.fromhex("000c000400000001")
)
COMMANDS = {
    "show": ["show", "SEGMENT", "-v"],
    "stats": ["show", "SEGMENT", "--stats"],
    "export": ["export", "SEGMENT", "-o", "OUT.pcapng"],
    "diff": ["diff", "SEGMENT", "SEGMENT"],
}


def text_of(what: Any) -> Any:
    return json.loads(json.dumps(what if isinstance(what, Summary) else asdict(what)))


METADATA = {
    "a newer one with a terminal's commands": (Origin, lambda o: {**o, "format": 99, "klamm": ESCAPES}),
    "an origin that is a list": (Origin, lambda o: []),
    "a host that is a list": (Origin, lambda o: {**o, "host": []}),
    "clusters that are a number": (Origin, lambda o: {**o, "clusters": 5}),
    "a time that is text": (Summary, lambda s: [[1, "x", 2], *s[1:]]),
    "a summary of one word": (Summary, lambda s: ["x"]),
    "batches that are text": (Statistics, lambda s: {**s, "batches": [["x", "x", "x"]]}),
}
ROWS = {
    "a time before 1970": FRAME._replace(time_ns=-1),
    "a fate of its own": FRAME._replace(fate=ESCAPES),  # type: ignore[arg-type]
    "a side of its own": FRAME._replace(side=ESCAPES),  # type: ignore[arg-type]
    "a frame of no side": FRAME._replace(side=None),
    "no fate": FRAME._replace(fate=None),  # type: ignore[arg-type]
    "a blank behind its end": FRAME._replace(blanks=((100, 5),)),
    "a blank before its beginning": FRAME._replace(blanks=((-5, 5),)),
    "blanks of gigabytes": FRAME._replace(blanks=tuple((at << 30, 1 << 30) for at in range(2))),
}


def forged(monkeypatch: pytest.MonkeyPatch, kind: type, change: Any) -> None:
    """Segments are written with other metadata of this kind, and their right checksum."""

    def written(what: Any) -> dict[bytes, bytes]:
        if not isinstance(what, kind):
            return to_metadata(what)
        text = json.dumps(change(text_of(what))).encode()
        return {KEY: text, CHECKSUM: b"%08x" % crc32c(text)}

    for module in (growing, encoding):
        monkeypatch.setattr(module, "to_metadata", written, raising=False)


def judged(command: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    out = str(file.with_name("out"))
    code = main([word.replace("SEGMENT", str(file)).replace("OUT", out) for word in command])
    found = capsys.readouterr()
    odd = {
        letter for line in (found.out + found.err).split("\n") for letter in line if not letter.isprintable()
    }
    assert not odd
    assert code == 1
    return found.err


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("kind", "change"), METADATA.values(), ids=METADATA)
def test_forged_metadata_are_damage(
    kind: type,
    change: Any,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "a.arrow"
    with monkeypatch.context() as forging:
        forged(forging, kind, change)
        write_file(file, [FRAME], origin())
    assert str(file) in judged(command, file, capsys)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_forged_rows_are_damage(
    row: Captured,
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "a.arrow"
    monkeypatch.setattr("klamm.captures.storage.writing.stored", lambda row: row)
    write_file(file, [row], origin())
    assert "damaged" in judged(command, file, capsys)


def test_names_of_files_and_of_columns_move_no_cursor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"{ESCAPES.replace('/', '')}.arrow").write_bytes(b"no segment")
    assert "no segment" in judged(["show", "SEGMENT"], tmp_path, capsys)


@pytest.mark.parametrize(("kind", "change"), METADATA.values(), ids=METADATA)
def test_a_forged_leftover_does_not_keep_a_capture_from_beginning(
    kind: type, change: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "20261123T064713Z-pod-aaaaaaaa-000001.arrow.growing"
    with monkeypatch.context() as forging:
        forged(forging, kind, change)
        segment = growing.begin(file, origin())
        segment.write([FRAME])
        segment.abandon()
    seal_leftovers(tmp_path)  # raises nothing
