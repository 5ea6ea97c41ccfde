"""Examples as commands."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.brokers.jars import ROOT

EXAMPLES = ROOT / "examples"


def output_of(
    *command: str, folder: Path = ROOT, exit_code: int = 0, environment: Mapping[str, str] | None = None
) -> str:
    """The output of a command, which has to end with `exit_code`."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, **(environment or {})},
    )
    assert done.returncode == exit_code, done.stdout
    return done.stdout
