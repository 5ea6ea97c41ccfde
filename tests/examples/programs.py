"""Examples as commands."""

import os
import subprocess
from pathlib import Path

from tests.brokers.jars import ROOT

EXAMPLES = ROOT / "examples"


def said(*command: str, folder: Path = ROOT, exit_code: int = 0, **variables: str) -> str:
    """What a command wrote; it has to end with `exit_code`."""
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == exit_code, done.stdout
    return done.stdout
