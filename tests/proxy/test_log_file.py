"""The log's file: rotated under klamm, and on a disk that is full."""

from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from klamm.proxy import config
from klamm.proxy.config_types import OutputFile
from klamm.proxy.log import file as log_file
from klamm.proxy.log.event_log import EventLog, open_log
from klamm.proxy.log.file import LOOK_S, LogFile
from klamm.proxy.log.lines import json_line


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Each file of this process. pytest's own output may be a larger file: leave before the test ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)


@pytest.mark.parametrize("created", [False, True], ids=["by klamm", "by logrotate"])
def test_a_file_that_was_moved_away_is_opened_anew_within_a_second(tmp_path: Path, created: bool) -> None:
    path, clock = tmp_path / "klamm.log", Clock()
    file = LogFile(path, clock)
    file.write(b"1\n")
    path.rename(tmp_path / "klamm.log.1")
    if created:
        path.touch(0o600)
    file.write(b"2\n")
    clock.now += LOOK_S
    file.write(b"3\n")
    file.close()
    assert (tmp_path / "klamm.log.1").read_bytes() == b"1\n2\n"
    assert path.read_bytes() == b"3\n"


def test_the_log_goes_to_the_file_that_has_the_path_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "LOOK_S", 0.0)
    path = tmp_path / "klamm.log"
    log = open_log(config.Log(file=OutputFile(str(path))))
    path.rename(tmp_path / "klamm.log.1")
    log.event("a", "b")
    log.close()
    assert (tmp_path / "klamm.log.1").read_bytes() == b""
    assert json.loads(path.read_bytes())["event"] == "a"


def test_a_file_that_is_copied_and_truncated_has_no_hole(tmp_path: Path) -> None:
    path = tmp_path / "klamm.log"
    file = LogFile(path)
    file.write(b"before\n")
    os.truncate(path, 0)
    file.write(b"after\n")
    file.close()
    assert path.read_bytes() == b"after\n"


def test_a_file_that_cannot_be_opened_anew_is_written_on_and_that_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, clock = tmp_path / "log", Clock()
    folder.mkdir()
    file = LogFile(folder / "klamm.log", clock)
    folder.rename(tmp_path / "away")
    for line in (b"1\n", b"2\n"):
        clock.now += LOOK_S
        file.write(line)
    assert (tmp_path / "away" / "klamm.log").read_bytes() == b"1\n2\n"
    [message] = capsys.readouterr().err.splitlines()
    assert message == (
        f"klamm: the log file {folder / 'klamm.log'} cannot be opened anew: No such file or directory; "
        "lines go to the file of before"
    )
    folder.mkdir()
    clock.now += LOOK_S
    file.write(b"3\n")
    file.close()
    assert (folder / "klamm.log").read_bytes() == b"3\n"


def test_a_full_disk_under_the_log_is_one_line_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    log = open_log(config.Log(file=OutputFile("/dev/full")))
    for number in range(5000):
        log.event("n", "", n=number)
    log.close()
    assert log.dropped == 5000
    assert capsys.readouterr().err == (
        "klamm: the log file /dev/full takes no lines: No space left on device; those that it does not take "
        "are counted in klamm_log_lines_dropped_total\n"
    )


def test_after_a_full_disk_a_line_is_whole_and_the_log_says_how_many_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "klamm.log"
    file = LogFile(path)
    with files_of_at_most(100):
        file.write(b"x" * 89 + b"\n")
        with pytest.raises(OSError):
            file.write(b"a line that is cut\n")
    file.write(b"whole\n")
    file.close()
    assert path.read_bytes().splitlines()[1:] == [b"a line tha", b"whole"]
    assert capsys.readouterr().err.count("\n") == 1


class Fails:
    """An output that takes nothing at first."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.fails = True

    def write(self, data: bytes) -> None:
        if self.fails:
            raise OSError(28, "No space left on device")
        self.taken.append(data)

    def flush(self) -> None: ...

    def close(self) -> None: ...


def test_lines_that_an_output_did_not_take_are_told_with_the_reason_when_it_takes_them_again() -> None:
    output = Fails()
    log = EventLog(output, json_line)
    for _ in range(3):
        log.event("lost", "")
    while log.dropped < 3:
        pass
    output.fails = False
    log.event("there", "")
    log.close()
    lines = [json.loads(line) for line in b"".join(output.taken).splitlines()]
    [dropped] = [line for line in lines if line["event"] == "log_dropped"]
    assert dropped["dropped"] == log.dropped == 3
    assert dropped["message"] == "log lines were dropped: No space left on device"
