"""Quantiles of durations of which counts in buckets are known, and the sum: they say no more than these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ENOUGH = 30  # in a bucket: taken as evenly spread in it


class Quantile(NamedTuple):
    """`sign` is "<" for an upper bound, ">" for a lower one, empty for the value itself."""

    seconds: float
    sign: str = ""


def quantile(
    buckets: Sequence[int], bounds_s: Sequence[float], total_s: float, share: float
) -> Quantile | None:
    """The duration below which `share` of the observations are; None without observations. Of a single one it
    is the sum; of few in a bucket the bucket's bound; of many a place within it.
    """
    count = sum(buckets)
    if count == 1:
        return Quantile(total_s)
    below = 0
    for number, times in enumerate(buckets):
        if times and below + times >= count * share:
            if number == len(bounds_s):
                return Quantile(bounds_s[-1], ">")
            if times < ENOUGH:
                return Quantile(bounds_s[number], "<")
            low = bounds_s[number - 1] if number else 0.0
            return Quantile(low + (bounds_s[number] - low) * (count * share - below) / times)
        below += times
    return None
