"""Children end with the process that started them, whenever that ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, time
from klamm.cli.children import ending_with_parent

before, parent, gone = ending_with_parent(), os.getpid(), sys.argv[1] == "gone"
child = os.fork()
if not child:
    while gone and os.getppid() == parent:
        time.sleep(0.01)
    before()
    print("it goes on", flush=True)
    os._exit(0)
if not gone:
    os.waitpid(child, 0)
os._exit(0)
"""


@pytest.mark.parametrize(("parent", "said"), [("gone", ""), ("there", "it goes on\n")])
def test_a_child_whose_parent_goes_before_its_program_starts_ends_too(parent: str, said: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, parent], capture_output=True, text=True, timeout=60, check=True
    )
    assert (ran.stdout, ran.stderr) == (said, "")
