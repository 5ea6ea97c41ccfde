"""The simulator on the command line: python -m tests.simulation --help"""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.fault_table import write
from tests.simulation.playing import Failure, play, shortened
from tests.simulation.steps import history
from tests.simulation.world import World

MOST_SHOWN = 5  # failing seeds, after which a run ends


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many seeds to play (10000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (0)")
    parser.add_argument("--minutes", type=float, default=0, help="end after so long (0: never)")
    parser.add_argument("--seed", type=int, help="play this one, and print its history")
    parser.add_argument("--faults", action="store_true", help="write the table of docs/reliability.md anew")
    chosen = parser.parse_args()
    if chosen.faults:
        write()
    elif chosen.seed is not None:
        sys.exit(_one(chosen.seed))
    else:
        sys.exit(_many(chosen.first, chosen.seeds, chosen.minutes))


def _one(seed: int) -> int:
    world = World(seed)
    world.trail = []
    steps = history(seed)
    failure: Failure | None = None
    try:
        world.play(steps)
    except Exception:
        failure = play(seed, steps)
    print("\n".join(world.trail))
    if failure is not None:
        print(_shown(failure))
    return int(failure is not None)


def _many(first: int, seeds: int, minutes: float) -> int:
    began, failed, played = time.monotonic(), 0, 0
    for seed in range(first, first + seeds):
        failure = play(seed)
        played += 1
        if failure is not None:
            failed += 1
            print(_shown(failure), flush=True)
        if failed == MOST_SHOWN or (minutes and time.monotonic() - began > 60 * minutes):
            break
    took = time.monotonic() - began
    print(f"{played} seeds from {first} on, {failed} failed, {played / took:.0f} a second, {took:.0f} s")
    return int(failed > 0)


def _shown(failure: Failure) -> str:
    shorter = shortened(failure)
    steps = "\n".join(f"  {step}" for step in shorter.steps)
    again = f"python -m tests.simulation --seed {failure.seed}"
    return (
        f"seed {failure.seed}: {failure.text}\n{again}\n"
        f"{len(shorter.steps)} of {len(failure.steps)} steps are enough for:\n{shorter.text}\n{steps}"
    )
