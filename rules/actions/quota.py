"""A rate limit that is measured, and turned into throttle times, as a broker's quotas are."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Protocol

SAMPLES = 10  # in a window, and the one that is being filled: quota.window.num is 11


KEPT = 10_000  # limited clients, topics, ...; beyond it all are forgotten, and begin anew


class SharedSamples(Protocol):
    """Samples that several processes fill together."""

    def add_in(self, what: Hashable, number: int, more: int) -> int:
        """Add units to the sample of this number; gives its sum. Of each `what` the last SAMPLES + 1 samples
        are kept.
        """


class Quota:
    """`limit`: units a second, measured over `window_ns`.

    Kafka counts in samples (SampledStat), divides their sum by the time since the oldest began, but at least
    by ten samples (Rate), and throttles until that rate is the limit (QuotaUtils.throttleTime).
    """

    def __init__(self, limit: float, window_ns: int) -> None:
        self.limit, self.sample_ns = limit, max(1, window_ns // SAMPLES)
        self.samples: deque[tuple[int, float]] = deque()  # (when it began in ns, units)

    def take(self, units: float, now: int) -> int:
        """Count these, at a time that may lie before the last one: connections take turns. Returns the
        throttle time in ns; 0 within the limit.
        """
        samples = self.samples
        if samples and now < samples[-1][0] + self.sample_ns:
            began, before = samples.pop()
            samples.append((began, before + units))
        else:
            samples.append((now, units))
        while samples[0][0] + (SAMPLES + 1) * self.sample_ns <= now:
            samples.popleft()
        elapsed = max(0, now - samples[0][0])
        elapsed += max(0, SAMPLES - elapsed // self.sample_ns) * self.sample_ns
        return max(0, round(sum(taken for _, taken in samples) / self.limit * 1e9) - elapsed)


@dataclass(slots=True)
class Quotas:
    """The quotas of one rule, by those that each is for."""

    own: dict[Hashable, Quota] = field(default_factory=dict)
    shared: SharedSamples | None = None  # decides, where processes count together

    def take(self, key: Hashable, limit: float, window_ns: int, units: float, now: int) -> int:
        """Quota.take of the quota of this key."""
        if self.shared is not None:
            return _together(self.shared, key, limit, max(1, window_ns // SAMPLES), units, now)
        if len(self.own) > KEPT:
            self.own.clear()
        return self.own.setdefault(key, Quota(limit, window_ns)).take(units, now)


def _together(
    shared: SharedSamples, key: Hashable, limit: float, sample_ns: int, units: float, now: int
) -> int:
    """The same with samples that begin at multiples of their length."""
    last = now // sample_ns
    taken = {last: shared.add_in(key, last, round(units))}
    taken |= {number: shared.add_in(key, number, 0) for number in range(last - SAMPLES, last)}
    oldest = min(number for number, sum_ in taken.items() if sum_ or number == last)
    elapsed = now - oldest * sample_ns
    elapsed += max(0, SAMPLES - elapsed // sample_ns) * sample_ns
    return max(0, round(sum(taken.values()) / limit * 1e9) - elapsed)
