"""Captures whose process is killed or whose disk fails."""

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from klamm.captures.storage.opening import KILLED
from klamm.captures.storage.reading import read
from klamm.captures.storage.segments import origin
from klamm.captures.storage.writing import Writer

ROOT = Path(__file__).resolve().parents[3]
AT_ONCE, ROUNDS = 4, 5
Given = tuple[int, float, float]  # the number of a request, when it was given, the longest wait so far


@contextmanager
def started(what: str, folder: Path, *before: str) -> Iterator[subprocess.Popen[str]]:
    command = [*before, sys.executable, "-m", "tests.captures.keeping_process", what, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def lines(process: subprocess.Popen[str]) -> Iterator[Given]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("\n"):
            number, at_s, stalled_s = line.split()
            yield int(number), float(at_s), float(stalled_s)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_killed_run_loses_its_last_second_at_most_and_the_next_seals_it(tmp_path: Path, seed: int) -> None:
    """Beside the second, what the machine kept the process waiting is allowed for."""
    random = Random(seed)
    with ExitStack() as stack:
        folders = [tmp_path / str(n) for n in range(AT_ONCE)]
        processes = [stack.enter_context(started("killed", folder)) for folder in folders]
        for folder, process in zip(folders, processes, strict=True):
            given, killed_s = given_until_killed(process, random.uniform(1.1, 1.6))
            allowed_s = 1 + 2 * max(stalled_s for _, _, stalled_s in given)
            due = [number for number, at_s, _ in given if at_s < killed_s - allowed_s]
            (left,) = folder.glob("*.growing")
            reading = read(folder)
            rows = list(reading)
            kept = [row.correlation_id for row in rows if row.kind == "frame"]
            assert kept == list(range(len(kept)))
            assert len(kept) >= len(due)
            assert reading.problems == [f"{left}: {KILLED}; {len(rows)} rows were read"]
            writer = Writer(folder, origin())
            writer.write(rows[:1])
            writer.seal()
            assert [path.suffix for path in folder.iterdir()] == [".arrow", ".arrow"]
            sealed = read(folder)
            assert [row.correlation_id for row in sealed if row.kind == "frame"] == kept
            assert sealed.problems == []


def given_until_killed(process: subprocess.Popen[str], after_s: float) -> tuple[list[Given], float]:
    """The entries given in all, and the time of the kill."""
    printed = lines(process)
    given = [next(printed)]
    until_s = given[0][1] + after_s
    while given[-1][1] < until_s:
        given.append(next(printed))
    killed_s = time.monotonic()
    process.kill()
    return given + list(printed), killed_s


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_disk_that_fails_costs_what_comes_meanwhile_and_is_told_in_the_capture(
    tmp_path: Path, how: str
) -> None:
    with started(how, tmp_path, "unshare", "--mount") as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    report = json.loads(out)
    assert report["sealed"]
    assert report["during"]["last_error"]
    kept, sent = report["frames"], report["sent"]
    assert kept == sorted(set(kept))
    assert kept[-1] == sent - 1
    assert report["after"]["lost_frames"] == sum(lost for lost, _ in report["lost"]) == sent - len(kept) > 0
    assert all(report["during"]["last_error"] in text for _, text in report["lost"])
    assert report["during"]["failing"]
    assert not report["after"]["failing"]
    again = rf"capture_recovered: {tmp_path}: written again after \d+ s, ([\d,]+) frames? lost meanwhile"
    found = re.fullmatch(again, report["said"][-1])
    assert found is not None
    assert int(found[1].replace(",", "")) == sum(count for count, _ in report["lost"])
    assert all(line.startswith("capture_failed: ") for line in report["said"][:-1])
