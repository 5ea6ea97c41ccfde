"""Run the phases of `make test`, and what failed in them once more, alone: python -m tools.run_tests [PHASE]

A test that fails or crashes, and passes when it runs again with nothing beside it, is unsteady: the run is
green, and a line names the test, so that it gets mended. What fails twice makes the run red. Each phase
prints its seconds, its slowest tests, and the files whose tests took the most processor time.

Of tests with many cases some run, and tests of the proxy run on one of the two builds of the session, chosen
by the commit (tests/sampling.py). KLAMM_SAMPLE=TEXT chooses others, KLAMM_SAMPLE= all on both.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CACHES = ".pytest_cache/phases"
PLUGINS = ("tools.crashes", "tools.processor_time")
SLOWEST = 20
GIVE_UP = 5  # failures of the second run: so many are no accident
TESTS_FAILED = 1  # pytest's exit code; others say that it could not run them


class Phase(NamedTuple):
    """Tests that one call of pytest runs. `behind`: another phase, beside which it runs on the cores that
    this one leaves; its output comes after that of the other.
    """

    paths: tuple[str, ...]
    marks: str
    workers: int  # processes of pytest-xdist; 0 for none
    package: str = ""  # a folder with klamm in it; the tree itself unless told
    behind: str = ""


PHASES = {
    "alone": Phase(("tests/pipeline",), "not long and alone", 0),
    "compiled": Phase(
        ("tests/proxy", "tests/hostile"), "not long and not brokers", 2, ".venv/compiled", behind="alone"
    ),
    "all": Phase(("tests",), "not long and not alone", 4),
}


def run_tests(phases: Mapping[str, Phase], root: Path = ROOT) -> int:
    """Exit code 0: each test has passed, in its phase or in its second run; otherwise pytest's."""
    shutil.rmtree(root / CACHES, ignore_errors=True)
    os.environ.setdefault("KLAMM_SAMPLE", _commit(root))
    print(f"KLAMM_SAMPLE={os.environ['KLAMM_SAMPLE']}", flush=True)
    for name, phase in phases.items():
        if phase.behind in phases:
            continue
        together = {name: phase} | {each: other for each, other in phases.items() if other.behind == name}
        runs = [
            _start(root, each, other, *_at_first(other), is_behind=each != name)
            for each, other in together.items()
        ]
        codes = [_end(run) for run in runs]
        for run, code in zip(runs, codes, strict=True):
            if code not in (0, TESTS_FAILED) or (code and not _failed(root, run.phase)):
                return code
    failed = {name: tests for name in phases if (tests := _failed(root, name))}
    for name in failed:
        print(f"\nphase {name}: what failed runs once more, alone", flush=True)
        options = ("--last-failed", "--last-failed-no-failures=none", f"--maxfail={GIVE_UP}")
        code = _end(_start(root, name, phases[name], *options))
        if code or _failed(root, name):
            return code or TESTS_FAILED
    for name, tests in failed.items():
        for test in tests:
            print(f"unsteady: {test} (phase {name})")
    return 0


class Run(NamedTuple):
    """A call of pytest. `output`: the file of its lines; None: they are printed as they come."""

    phase: str
    child: subprocess.Popen[bytes]
    began: float
    output: Path | None


def _at_first(phase: Phase) -> tuple[str, ...]:
    return f"--durations={SLOWEST}", "-n", str(phase.workers)


def _start(root: Path, name: str, phase: Phase, *options: str, is_behind: bool = False) -> Run:
    """`is_behind`: it takes only what others leave of the cores."""
    command = ["nice", "-n", "19"] if is_behind else []
    command += [sys.executable, "-m", "pytest", *phase.paths, "-q", "-m", phase.marks]
    command += [word for plugin in PLUGINS for word in ("-p", plugin)]
    command += ["--no-loadscope-reorder", "-o", f"cache_dir={CACHES}/{name}", *options]
    package = {"PYTHONPATH": phase.package} if phase.package else {}
    env = {**os.environ, "KLAMM_BUILD": "compiled" if phase.package else "python", **package}
    began = time.monotonic()
    if not is_behind:
        return Run(name, subprocess.Popen(command, cwd=root, env=env), began, None)
    output = root / CACHES / f"{name}.out"
    output.parent.mkdir(parents=True, exist_ok=True)
    with output.open("wb") as to:
        child = subprocess.Popen(command, cwd=root, env=env, stdout=to, stderr=to)
    return Run(name, child, began, output)


def _end(run: Run) -> int:
    """Waits for it; its exit code."""
    code = run.child.wait()
    if run.output is not None:
        print(run.output.read_text(errors="replace"), flush=True)
    print(f"phase {run.phase}: {time.monotonic() - run.began:.0f} s", flush=True)
    return code


def _commit(root: Path) -> str:
    """The commit's hash; "unknown" outside of a clone."""
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        found = ""
    return found or "unknown"


def _failed(root: Path, name: str) -> list[str]:
    """The tests that failed when the phase ran last."""
    file = root / CACHES / name / "v" / "cache" / "lastfailed"
    return list(json.loads(file.read_text())) if file.exists() else []


if __name__ == "__main__":
    sys.exit(run_tests({name: PHASES[name] for name in sys.argv[1:] or PHASES}))
