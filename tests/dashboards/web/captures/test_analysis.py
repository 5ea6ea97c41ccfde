"""A process that stands for `klamm analyze`: its progress, its result, its failures, and its end."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from klamm.dashboards.web.captures import analysis
from klamm.dashboards.web.captures.analysis import Analysis, Running
from tests.dashboards.web.captures.test_findings import TOLD
from tests.fakes.waiting import eventually

READ = {"damaged": ["a.arrow: it was cut short"], "lost_frames": 12}
INSPECTOR = "http://127.0.0.1:8080/"
RESULT = {
    "read": READ,
    "findings": [TOLD],
    "more": {"tiny_batches": 4},
    "failed": {"slow_brokers": "no luck"},
}
STEP = 'print(json.dumps({"step": "looking", "done": 3, "of": 32}), file=sys.stderr, flush=True)\n'


@asynccontextmanager
async def analysing(folder: Path, program: str, *paths: str) -> AsyncIterator[Analysis]:
    """With this program in place of `klamm analyze`."""
    script = folder / "program.py"
    script.write_text("import json, os, subprocess, sys, time\n" + program)
    it = Analysis(paths or ["capture/"], (sys.executable, str(script)))
    try:
        yield it
    finally:
        await it.close()


async def until(it: Analysis, **fields: Any) -> None:
    async with asyncio.timeout(60):
        while any(getattr(it.state, name) != value for name, value in fields.items()):
            assert it.state.phase in ("running", fields.get("phase")), it.state
            await asyncio.sleep(0.01)


def lives(pid: int) -> bool:
    """Not as one that only waits to be asked for its status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.asyncio
async def test_steps_are_told_as_they_come_and_findings_are_kept(tmp_path: Path) -> None:
    program = (
        STEP + f"sys.stdin.read()\nwhile not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(.01)\n"
    )
    program += f"print({json.dumps(RESULT)!r})\nsys.exit(1)\n"  # the code for a damaged capture
    async with analysing(tmp_path, program) as it:
        assert (it.state.phase, it.found) == ("never", [])
        it.begin(INSPECTOR)
        await until(it, step="looking", done=3, of=32)
        with pytest.raises(Running):
            it.begin(INSPECTOR)
        (tmp_path / "go").touch()
        await until(it, phase="done")
        state = it.state
        assert (state.findings, state.more, state.report, state.problem) == (1, 4, False, "")
        assert state.notes == [
            "a.arrow: it was cut short", "12 frames are missing in the capture",
            "the detector slow_brokers failed: no luck",
        ]  # fmt: skip
        assert state.began <= state.ended
        assert [one.detector for one in it.found] == ["tiny_batches"]


@pytest.mark.asyncio
async def test_captures_are_given_as_they_are_and_the_page_comes_from_the_same_run(tmp_path: Path) -> None:
    told = json.dumps({**RESULT, "more": {}})
    program = "words = sys.argv[1:]\nopen(words[words.index('--html') + 1], 'w').write('a page')\n"
    program += f"open({str(tmp_path / 'words')!r}, 'w').write(json.dumps(words))\nprint({told!r})\n"
    async with analysing(tmp_path, program, "one/", "-two") as it:
        it.begin(INSPECTOR)
        await until(it, phase="done")
        words = json.loads((tmp_path / "words").read_text())
        assert words[:2] == ["--json", "--progress"]
        assert words[-3:] == ["--", "one/", "-two"]
        assert (it.state.report, it.report.read_text()) == (True, "a page")
        folder = it.report.parent
    assert not folder.exists()


@pytest.mark.asyncio
async def test_without_what_plots_need_there_is_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "OF_THE_PAGE", ("no_such_module",))
    program = f"assert '--html' not in sys.argv\nprint({json.dumps(RESULT)!r})\n"
    async with analysing(tmp_path, program) as it:
        it.begin(INSPECTOR)
        await until(it, phase="done")
        assert not it.state.report


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        (
            "print('chatter of Java', file=sys.stderr)\n"
            "print('klamm: pyspark is not installed: pip install', file=sys.stderr)\nsys.exit(1)",
            "pyspark is not installed: pip install",
        ),
        ("print('Killed', file=sys.stderr)\nsys.exit(1)", "Killed"),
        ("sys.exit(1)", "it ended without a word"),
        ("print('[')", "not what klamm analyze prints: "),
        ("print('{}')", "not what klamm analyze prints: "),
        ("print('x' * (2 << 20), file=sys.stderr)", "not what klamm analyze prints: "),
    ],
)
@pytest.mark.asyncio
async def test_a_failure_is_told_in_a_line_and_the_next_run_is_not_hindered(
    program: str, problem: str, tmp_path: Path
) -> None:
    async with analysing(tmp_path, program) as it:
        for _ in range(2):
            it.begin(INSPECTOR)
            await until(it, phase="failed")
            assert it.state.problem.startswith(problem)
            assert "\n" not in it.state.problem
        assert it.found == []


@pytest.mark.asyncio
async def test_a_program_that_is_not_there_is_told() -> None:
    it = Analysis(["capture/"], ("/no/such/program",))
    it.begin(INSPECTOR)
    await until(it, phase="failed")
    assert it.state.problem == "/no/such/program: No such file or directory"
    await it.close()


GRANDCHILD = """\
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({file!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
"""


@pytest.mark.parametrize("how", ["cancel", "close"])
@pytest.mark.asyncio
async def test_it_ends_with_all_that_it_has_started(how: str, tmp_path: Path) -> None:
    """As Java is, which holds the output open."""
    pids = tmp_path / "pids"
    program = GRANDCHILD.format(file=str(pids)) + STEP + "time.sleep(600)\n"
    async with analysing(tmp_path, program) as it:
        it.begin(INSPECTOR)
        await until(it, step="looking")
        started = [int(pid) for pid in pids.read_text().split()]
        assert all(map(lives, started))
        await getattr(it, how)()
        await eventually(lambda: not any(map(lives, started)))
        assert it.state.phase == "cancelled"
        assert it.state.ended >= it.state.began


@pytest.mark.asyncio
async def test_one_that_does_not_end_by_itself_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analysis, "ENDING_S", 0.1)
    program = (
        f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen({str(tmp_path / 'pid')!r}, 'w')"
    )
    program += ".write(str(os.getpid()))\n" + STEP + "time.sleep(600)\n"
    async with analysing(tmp_path, program) as it:
        it.begin(INSPECTOR)
        await until(it, step="looking")
        await it.cancel()
        assert not lives(int((tmp_path / "pid").read_text()))
        it.begin(INSPECTOR)
        assert it.state.phase == "running"


@pytest.mark.asyncio
async def test_findings_of_before_stay_when_a_later_run_is_cancelled(tmp_path: Path) -> None:
    first = tmp_path / "first"
    program = f"if not os.path.exists({str(first)!r}):\n    open({str(first)!r}, 'w')\n"
    program += f"    print({json.dumps(RESULT)!r})\n    sys.exit()\n" + STEP + "time.sleep(600)\n"
    async with analysing(tmp_path, program) as it:
        it.begin(INSPECTOR)
        await until(it, phase="done")
        it.begin(INSPECTOR)
        await until(it, step="looking")
        await it.cancel()
        assert (it.state.phase, len(it.found)) == ("cancelled", 1)
        await it.cancel()  # there is nothing to cancel
        assert it.state.phase == "cancelled"
