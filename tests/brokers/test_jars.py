"""Java programs of the tests: what is compiled of them is of their text, whatever was compiled before."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.brokers import jars
from tests.brokers.jars import compiled, java
from tests.brokers.kraft import VERSION


@pytest.fixture(autouse=True)
def _nothing_made_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "MADE", tmp_path / "made")


def program(folder: Path, name: str, says: str) -> None:
    """A program older than all that is compiled, as after a checkout or a rename."""
    folder.mkdir(exist_ok=True)
    text = f"class {name} {{ public static void main(String[] words) {{ System.out.print({says!r}); }} }}"
    file = folder / f"{name}.java"
    file.write_text(text.replace("'", '"'))
    os.utime(file, (0, 0))


def said(name: str, *sources: Path) -> str:
    command = java(VERSION, name, classes=compiled(VERSION, *sources))
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_programs_of_one_kafka_do_not_stand_for_each_other(tmp_path: Path) -> None:
    program(tmp_path / "a", "First", "one")
    program(tmp_path / "b", "Second", "two")
    assert said("First", tmp_path / "a") == "one"
    assert said("Second", tmp_path / "b") == "two"
    (tmp_path / "b" / "Second.java").unlink()
    program(tmp_path / "b", "Renamed", "three")
    assert said("Renamed", tmp_path / "b") == "three"


def test_a_program_is_compiled_once_for_each_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "First", "one")
    first = compiled(VERSION, tmp_path / "First.java")
    program(tmp_path, "First", "another")
    assert compiled(VERSION, tmp_path / "First.java") != first
    program(tmp_path, "First", "one")
    monkeypatch.setattr(jars, "_compile", None)
    assert compiled(VERSION, tmp_path / "First.java") == first


def test_what_the_compiler_says_is_told_and_tried_again(tmp_path: Path) -> None:
    (tmp_path / "Wrong.java").write_text("class Wrong { int = 1; }")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"javac failed:\n.*Wrong\.java:1: error"):
            compiled(VERSION, tmp_path)
