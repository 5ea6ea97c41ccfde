"""The formula of `python -m benchmarks sizing`: docs/benchmarks.md tells how many cores klamm takes by it."""

import pytest

from benchmarks.sizing import CHECKED, FROM, Cost, formula


def test_the_formula_holds_for_the_loads_from_which_it_is_taken() -> None:
    small, large = Cost(20e-6, 500), Cost(320e-6, 1_000_500)
    made = formula(small, large)
    for load in (small, large):
        assert made.of(load.wire_bytes) == pytest.approx(load.cpu_s)
    assert made.each_byte == pytest.approx(300e-6 / 1_000_000)


def test_it_is_checked_against_other_loads() -> None:
    assert len(CHECKED) >= 2
    assert not set(FROM) & set(CHECKED)
