"""tools/packages.sh: where it may not install, it says what somebody else has to run."""

import os
import subprocess
from pathlib import Path

from tests.brokers.jars import ROOT

WANTED = ("no-such-command=no-such-package", "sh=dash", "no-such-library")


def packages(tmp_path: Path, **programs: str) -> subprocess.CompletedProcess[str]:
    """It runs with these programs in the place of those of the system."""
    for name, text in programs.items():
        program = tmp_path / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [str(ROOT / "tools" / "packages.sh"), *WANTED]
    return subprocess.run(command, env=path, capture_output=True, text=True, timeout=30, check=False)


def test_who_is_not_root_is_told_the_one_command_to_run(tmp_path: Path) -> None:
    done = packages(tmp_path, id="echo 1000", apt_get="echo installed")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "Missing system packages: no-such-package no-such-library. "
        f"Run: sudo {ROOT / 'tools' / 'packages.sh'} no-such-command=no-such-package no-such-library"
    ]


def test_what_is_there_is_not_installed() -> None:
    command = [str(ROOT / "tools" / "packages.sh"), "sh=dash"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
