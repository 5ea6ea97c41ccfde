"""promtool, of the Debian package prometheus."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Promtool = Callable[..., str]


@pytest.fixture(scope="session")
def promtool() -> Promtool:
    """Runs it with words, and gives what it prints; it has to be content."""
    program = shutil.which("promtool")
    assert program, "promtool is missing: install the package prometheus"

    def run(*words: str | Path) -> str:
        command = [program, *map(str, words)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run
