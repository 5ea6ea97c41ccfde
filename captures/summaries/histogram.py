"""Values counted in buckets that grow with them: quantiles within 2%, of few values exact, and whether
distributions differ.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from math import ceil, inf, log2, sqrt

PER_OCTAVE = 16  # buckets from a value to its double
ZERO_AT = 64 * PER_OCTAVE  # the bucket of 1
FEW = 64  # values that are kept as they are
SURE = 1.95  # Kolmogorov-Smirnov: one in a thousand pairs of like distributions is further apart


def bucket(value: float) -> int:
    """0 is for what is not positive."""
    return int(log2(value) * PER_OCTAVE + ZERO_AT) if value > 0 else 0


def middle(number: int) -> float:
    """The value in the middle of a bucket."""
    return float(2 ** ((number - ZERO_AT + 0.5) / PER_OCTAVE)) if number else 0.0


@dataclass(slots=True)
class Histogram:
    """Counts of values by bucket, and their sum, least and largest. `few`: all values, while there are at
    most FEW.
    """

    counts: Counter[int] = field(default_factory=Counter)
    total: float = 0
    least: float = inf
    most: float = -inf
    few: list[float] = field(default_factory=list)

    def add(self, value: float) -> None:
        self.counts[bucket(value)] += 1
        self.total += value
        self.least, self.most = min(self.least, value), max(self.most, value)
        if len(self.few) <= FEW:
            self.few.append(value)

    def __len__(self) -> int:
        return self.counts.total()

    @property
    def mean(self) -> float:
        return self.total / len(self) if self.counts else 0.0

    def quantile(self, share: float) -> float:
        """The value below which this share of all is; 0 if there are none."""
        if 0 < len(self) == len(self.few):
            return sorted(self.few)[max(0, ceil(share * len(self)) - 1)]
        left = share * len(self)
        for number in sorted(self.counts):
            left -= self.counts[number]
            if left <= 0:
                return min(max(middle(number), self.least), self.most)
        return self.most if self.counts else 0.0

    def differs(self, other: Histogram) -> bool:
        """Whether the two surely have different distributions. Few values are never sure."""
        mine, theirs = len(self), len(other)
        if not mine or not theirs:
            return False
        apart = most = 0.0
        for number in sorted(self.counts.keys() | other.counts.keys()):
            apart += self.counts[number] / mine - other.counts[number] / theirs
            most = max(most, abs(apart))
        return most > SURE * sqrt((mine + theirs) / (mine * theirs))
