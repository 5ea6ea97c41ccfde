"""A soak of a minute and a half."""

import os
import subprocess
import sys

import pytest

from tests.brokers.jars import ROOT

MINUTES = 1.5


@pytest.mark.long
@pytest.mark.brokers
@pytest.mark.timeout(900)
def test_nothing_is_lost_in_a_short_soak() -> None:
    words = [sys.executable, "-m", "tests.soak", "--minutes", str(MINUTES)]
    env = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    ran = subprocess.run(
        words, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "nothing was lost, nothing doubled, nothing out of order" in ran.stdout
