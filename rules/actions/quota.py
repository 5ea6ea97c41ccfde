"""A rate limit that is measured, and turned into throttle times, as a broker's quotas are."""

from __future__ import annotations

from collections import deque

SAMPLES = 10  # in a window, and the one that is being filled: quota.window.num is 11


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
