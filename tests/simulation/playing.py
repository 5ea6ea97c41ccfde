"""Plays histories, and finds the shortest one that still fails."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.simulation.judge import Broken
from tests.simulation.steps import Step, history
from tests.simulation.world import World

MOST_TRIES = 3000  # histories that are played to find a shorter one
LAST_CALLS = 4  # of a traceback, in a message


class Failure(NamedTuple):
    seed: int
    steps: Sequence[Step]
    invariant: str
    text: str


def play(seed: int, steps: Sequence[Step] | None = None) -> Failure | None:
    """Play the history of a seed, or some of its steps."""
    steps = history(seed) if steps is None else steps
    try:
        World(seed).play(steps)
    except Broken as error:
        return Failure(seed, steps, error.invariant, str(error))
    except Exception as error:
        calls = "".join(traceback.format_tb(error.__traceback__)[-LAST_CALLS:])
        return Failure(seed, steps, "klamm raises nothing", f"klamm raises {error!r}\n{calls}")
    return None


def shortened(failure: Failure) -> Failure:
    """The same failure with as few steps as were found: without whole connections first, then without runs of
    steps, each half as long as those before.
    """
    tries = 0

    def still_fails(steps: Sequence[Step]) -> bool:
        nonlocal tries, failure
        tries += 1
        found = play(failure.seed, steps) if tries <= MOST_TRIES else None
        if found is None or found.invariant != failure.invariant:
            return False
        failure = found
        return True

    for number in sorted({step.connection for step in failure.steps}):
        still_fails([step for step in failure.steps if step.connection != number])
    size = len(failure.steps) // 2
    while size:
        if not _without_runs(failure.steps, size, still_fails):
            size //= 2
    return failure


def _without_runs(steps: Sequence[Step], size: int, still_fails: Callable[[Sequence[Step]], bool]) -> bool:
    """Leave out each run of so many steps that is not needed. Was there one?"""
    found, at = False, 0
    while at < len(steps):
        shorter = [*steps[:at], *steps[at + size :]]
        if still_fails(shorter):
            steps, found = shorter, True
        else:
            at += size
    return found
