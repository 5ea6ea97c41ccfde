"""tools/run_tests.py, with a project of a few tests: what it calls green, red and unsteady."""

from pathlib import Path

import pytest

from tools.run_tests import ROOT, Phase, run_tests

PROJECT = """
[pytest]
markers = long
addopts = -p xdist.plugin
"""
STEADY = "def test_steady(): pass\n"
BUSY = """
import subprocess, sys
def test_busy(): subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 2: pass"])
"""
BROKEN = "def test_broken(): assert False\n"
NOT_AT_FIRST = """
from pathlib import Path
def test_second_time():
    ran = Path(__file__).with_suffix(".ran")
    first, _ = not ran.exists(), ran.touch()
    assert not first
"""
MEETS = """
import time
from pathlib import Path
def test_meets():
    folder = Path(__file__).parent.parent
    (folder / "{own}.there").touch()
    while not (folder / "{other}.there").exists():
        time.sleep(0.01)
"""
CRASHES_AT_FIRST = """
import os
from pathlib import Path
def test_crash():
    ran = Path(__file__).with_suffix(".ran")
    first, _ = not ran.exists(), ran.touch()
    if first:
        os.abort()
"""
FIXTURE_AT_FIRST = """
import pytest
from pathlib import Path
@pytest.fixture(scope="session")
def shared():
    ran = Path(__file__).with_suffix(".ran")
    first, _ = not ran.exists(), ran.touch()
    assert not first
@pytest.mark.parametrize("n", range(9))
def test_shared(shared, n): pass
"""


@pytest.fixture(autouse=True)
def _plugins_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the project is not this one."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they start slowly


def run(root: Path, workers: int = 0, **files: str) -> int:
    (root / "pytest.ini").write_text(PROJECT)
    for name, text in files.items():
        (root / f"test_{name}.py").write_text(text)
    return run_tests({"first": Phase((".",), "not long", workers)}, root)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_test_that_passes_alone_is_named_and_the_run_is_green(
    workers: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, workers, steady=STEADY, moody=NOT_AT_FIRST) == 0
    printed = capfd.readouterr().out
    assert printed.splitlines()[-1] == "unsteady: test_moody.py::test_second_time (phase first)"
    assert "1 failed, 1 passed" in printed
    assert "slowest" in printed


@pytest.mark.parametrize("workers", [0, 2])
def test_the_files_that_take_the_most_processor_time_are_told(
    workers: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """That of processes that a test started counts."""
    assert run(tmp_path, workers, steady=STEADY, busy=BUSY) == 0
    lines = capfd.readouterr().out.partition("processor time of")[2].splitlines()
    told = {file: int(seconds) for seconds, _, file in (line.split() for line in lines[1:3])}
    assert list(told) == ["test_busy.py", "test_steady.py"]
    assert told["test_busy.py"] >= 2


def test_a_phase_behind_another_runs_beside_it_and_is_told_after_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each of the two tests waits until the other one runs."""
    (tmp_path / "pytest.ini").write_text(PROJECT)
    for name, other in (("front", "behind"), ("behind", "front")):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"test_{name}.py").write_text(MEETS.format(own=name, other=other))
    (tmp_path / "behind" / "test_moody.py").write_text(NOT_AT_FIRST)
    phases = {
        "front": Phase(("front",), "not long", 0),
        "behind": Phase(("behind",), "not long", 0, behind="front"),
    }
    assert run_tests(phases, tmp_path) == 0
    printed = capfd.readouterr().out
    places = [printed.index(words) for words in ("phase front:", "1 failed, 1 passed", "phase behind:")]
    assert places == sorted(places)
    assert printed.splitlines()[-1] == "unsteady: behind/test_moody.py::test_second_time (phase behind)"


def test_a_test_in_which_a_worker_crashed_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, 2, steady=STEADY, moody=CRASHES_AT_FIRST) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "unsteady: test_moody.py::test_crash (phase first)"


def test_a_test_that_fails_twice_makes_the_run_red(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, steady=STEADY, broken=BROKEN, moody=NOT_AT_FIRST) == 1
    assert "unsteady" not in capfd.readouterr().out


def test_tests_whose_common_fixture_failed_run_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, shared=FIXTURE_AT_FIRST) == 0
    assert capfd.readouterr().out.count("unsteady: ") == 9


def test_where_all_pass_nothing_runs_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, steady=STEADY) == 0
    printed = capfd.readouterr().out
    assert printed.count("phase first") == 1
    assert "unsteady" not in printed


@pytest.mark.parametrize(
    ("text", "code"), [("import nothing_of_that_name", 2), ("def helper(): pass", 5)], ids=["error", "none"]
)
def test_tests_that_cannot_run_make_it_red_at_once(
    text: str, code: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, broken=text) == code
    assert "once more" not in capfd.readouterr().out


def test_what_an_older_run_left_is_forgotten(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, broken=BROKEN) == 1
    assert run(tmp_path, broken=STEADY) == 0
    assert "unsteady" not in capfd.readouterr().out
