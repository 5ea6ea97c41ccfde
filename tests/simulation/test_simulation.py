"""The first seeds of the simulator; and what the simulator itself has to do."""

import subprocess
import sys

import pytest

from tests.brokers.jars import ROOT
from tests.simulation.fault_table import PAGE
from tests.simulation.faults import FAULTS, planted
from tests.simulation.playing import play, shortened
from tests.simulation.steps import CAST, history
from tests.simulation.world import World

SEEDS = 10_000
PARTS = 20
PLAYED = "from tests.simulation.test_simulation import told; print(told(3))"


@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_happens_the_invariants_hold(part: int) -> None:
    each = SEEDS // PARTS
    for seed in range(part * each, (part + 1) * each):
        failure = play(seed)
        if failure is not None:
            shorter = shortened(failure)
            pytest.fail(
                f"seed {seed}: {shorter.text}\n"
                f"{len(shorter.steps)} of {len(failure.steps)} steps are enough: "
                f"python -m tests.simulation --seed {seed}"
            )


def told(seed: int) -> str:
    """What happens with a seed, in lines."""
    world = World(seed)
    world.trail = []
    world.play(history(seed))
    return "\n".join(world.trail)


def test_a_seed_plays_the_same_in_another_process() -> None:
    env = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONHASHSEED": "77"}
    ran = subprocess.run(
        [sys.executable, "-c", PLAYED], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    assert ran.stdout.rstrip("\n") == told(3)


def test_the_page_says_how_many_seeds_are_played() -> None:
    assert f"`make test` plays the first {SEEDS:,} seeds" in " ".join(PAGE.read_text().split())


def test_each_kind_of_step_comes() -> None:
    assert {step.kind for seed in range(40) for step in history(seed)} == set(CAST)


def test_a_failing_history_is_shortened_to_a_few_steps() -> None:
    fault = next(fault for fault in FAULTS if fault.text == "the addresses of one node are not replaced")
    with planted(fault):
        failure = next(filter(None, map(play, range(50))))
        shorter = shortened(failure)
    assert shorter.invariant == failure.invariant == "no address of a broker reaches a client"
    assert len(shorter.steps) <= 6 < len(failure.steps)
    assert play(shorter.seed, shorter.steps) is None
