"""Values counted in buckets."""

from __future__ import annotations

import random

from klamm.captures.summaries.histogram import Histogram


def of(values: list[float]) -> Histogram:
    found = Histogram()
    for value in values:
        found.add(value)
    return found


def test_a_quantile_is_right_within_a_bucket() -> None:
    found = of([float(n) for n in range(1, 10_001)])
    for share in (0.01, 0.5, 0.99, 0.999):
        assert abs(found.quantile(share) - share * 10_000) <= share * 10_000 * 0.045
    assert (found.most, len(found), found.mean) == (10_000, 10_000, 5000.5)


def test_equal_values_have_exactly_that_quantile() -> None:
    assert of([3.7] * 9).quantile(0.5) == 3.7


def test_quantiles_of_few_values_are_values() -> None:
    some = [1.0, 1.9, 3.7, 41.0]
    found = of(some)
    assert [found.quantile(share) for share in (0.25, 0.5, 0.75, 0.99)] == some
    assert of([5.0]).quantile(0.5) == of([5.0]).quantile(0.99) == 5.0


def test_nothing_and_zero_have_quantiles_too() -> None:
    assert (of([]).quantile(0.5), of([]).mean) == (0, 0)
    assert of([0, 0, 0]).quantile(0.99) == 0


def test_a_shift_of_many_values_is_told_from_luck() -> None:
    draw = random.Random(1)
    one = of([draw.expovariate(1) for _ in range(1000)])
    like = of([draw.expovariate(1) for _ in range(1000)])
    other = of([2 * draw.expovariate(1) for _ in range(1000)])
    assert not one.differs(like)
    assert one.differs(other)
    assert other.differs(one)


def test_few_values_are_never_sure_to_differ() -> None:
    assert not of([1.0] * 3).differs(of([100.0] * 3))
    assert not of([]).differs(of([1.0] * 1000))
