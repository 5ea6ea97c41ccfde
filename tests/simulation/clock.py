"""Virtual time, in ns: nothing sleeps, and what is due runs when the time is set forward."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

Work = Callable[[], None]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000_000
        self.due: list[tuple[int, int, Work]] = []
        self.count = 0  # keeps the order of what is due at the same time

    def later(self, ns: int, work: Work) -> None:
        self.count += 1
        heappush(self.due, (self.now + max(0, ns), self.count, work))

    def forward(self, ns: int) -> None:
        """Set the time forward, and run what is due on the way, at its time."""
        until = self.now + ns
        while self.due and self.due[0][0] <= until:
            self.next()
        self.now = max(self.now, until)

    def next(self) -> None:
        """Set the time to the next thing that is due, and run it."""
        at, _, work = heappop(self.due)
        self.now = max(self.now, at)
        work()
