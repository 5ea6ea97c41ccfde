"""Quantiles of buckets: no more than they tell."""

from typing import Any

import pytest

from klamm.dashboards.terminal.quantiles import Quantile, quantile

NEAR_HALF: Any = pytest.approx(0.50505, abs=1e-4)


@pytest.mark.parametrize(
    ("buckets", "total_s", "share", "expected"),
    [
        ([0, 0, 0], 0.0, 0.5, None),
        ([0, 1, 0], 1.25, 0.5, Quantile(1.25)),  # of one request: its own time
        ([0, 1, 0], 1.25, 0.99, Quantile(1.25)),
        ([0, 0, 1], 7.0, 0.5, Quantile(7.0)),
        ([1, 1, 0], 2.0, 0.5, Quantile(1.0, "<")),
        ([1, 1, 0], 2.0, 0.99, Quantile(2.0, "<")),
        ([0, 29, 0], 40.0, 0.5, Quantile(2.0, "<")),
        ([0, 30, 0], 40.0, 0.5, Quantile(1.5)),
        ([50, 50, 0], 100.0, 0.5, Quantile(1.0)),
        ([990, 10, 0], 500.0, 0.5, Quantile(NEAR_HALF)),
        ([980, 20, 0], 500.0, 0.99, Quantile(2.0, "<")),  # few are so slow: only their bucket is known
        ([0, 0, 10], 90.0, 0.5, Quantile(2.0, ">")),
    ],
)
def test_a_quantile_is_exact_or_a_bound_unless_many_are_in_its_bucket(
    buckets: list[int], total_s: float, share: float, expected: Quantile | None
) -> None:
    assert quantile(buckets, (1.0, 2.0), total_s, share) == expected
