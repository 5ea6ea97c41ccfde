"""The soak on the command line: python -m tests.soak --help"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from random import Random

from tests.soak.playing import soak

ALONE = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60, help="so long clients work (60)")
    parser.add_argument("--seed", type=int, default=1, help="which faults come, in which order (1)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)  # it has a network alone
    chosen = parser.parse_args()
    if not chosen.inside:
        if os.geteuid():
            sys.exit("a soak needs root: it cuts brokers off, in a network of its own")
        os.execvp(ALONE[0], [*ALONE, sys.executable, "-m", "tests.soak", *sys.argv[1:], "--inside"])
    folder = Path(tempfile.mkdtemp(prefix="klamm-soak-"))
    wrong = soak(folder, chosen.minutes * 60, Random(chosen.seed))
    if wrong:
        sys.exit("\n".join([*wrong, f"logs, captures and what the brokers have are in {folder}"]))
    shutil.rmtree(folder)
    print("nothing was lost, nothing doubled, nothing out of order")
