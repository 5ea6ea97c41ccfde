"""A capture that grows, followed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from klamm.captures.captured import Captured
from klamm.captures.storage.following import Following
from klamm.captures.storage.segments import Origin
from klamm.captures.storage.writing import Limits, Writer
from tests.captures.rows import Talk, written


def followed(folder: Path, *happens: Callable[[], object]) -> tuple[list[Captured], list[str]]:
    """The rows read while these things happened, one step at each look."""
    left = list(happens)

    def wait() -> bool:
        if not left:
            return False
        left.pop(0)()
        return True

    following = Following([folder], wait)
    return list(following), following.problems


def beats(count: int) -> list[Captured]:
    talk = Talk()
    for _ in range(count):
        talk.heartbeat()
    return talk.rows


def test_rows_come_as_they_are_flushed_once_each_over_all_segments(tmp_path: Path) -> None:
    rows = beats(6)
    writer = Writer(tmp_path, Origin("test"), Limits())

    def write(some: Iterable[Captured]) -> None:
        writer.write(list(some))
        writer.flush()

    found, problems = followed(
        tmp_path,
        lambda: write(rows[:3]),
        lambda: write(rows[3:4]),
        lambda: None,
        writer.seal,
        lambda: write(rows[4:]),
        writer.seal,
        lambda: None,
    )
    assert (found, problems) == (rows, [])


def test_what_is_sealed_between_two_looks_is_read_to_its_end(tmp_path: Path) -> None:
    rows = beats(4)
    writer = Writer(tmp_path, Origin("test"), Limits())
    writer.write(rows[:2])
    writer.flush()

    def all_at_once() -> None:
        writer.write(rows[2:])
        writer.seal()

    assert followed(tmp_path, all_at_once) == (rows, [])


def test_a_pipe_in_the_folder_is_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.arrow")
    following = Following([tmp_path], lambda: False)
    assert list(following) == []
    assert following.problems == []


def test_a_folder_may_be_empty_at_first_and_files_foreign(tmp_path: Path) -> None:
    def appear() -> None:
        written(tmp_path / "a.arrow", beats(1))
        (tmp_path / "notes.txt").write_text("no capture")

    found, problems = followed(tmp_path, appear, lambda: None)
    assert found == beats(1)
    assert len(problems) == 1
    assert "notes.txt" in problems[0]
