"""The memory of a full queue is kept, and not taken from the kernel anew each time."""

import platform
import subprocess
import sys

import pytest

ROUNDS = 50
FAULTS = f"""
from resource import RUSAGE_SELF, getrusage
from klamm.settings.heap import keep_freed

def fill():
    return [b"a" * 66_000 + bytes([n]) for n in range(100)]

if {{keep}}:
    keep_freed(16 << 20)
for _ in range(5):
    fill()
before = getrusage(RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    fill()
print(getrusage(RUSAGE_SELF).ru_minflt - before)
"""


def faults_a_round(keep: bool) -> float:
    """Pages that the kernel mapped each time that 6.6 MB of chunks came and went."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS.format(keep=keep)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return int(done.stdout) / ROUNDS


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is nothing to be set")
def test_chunks_that_come_and_go_find_their_pages_mapped() -> None:
    assert faults_a_round(keep=True) < 10
    assert faults_a_round(keep=False) > 500
