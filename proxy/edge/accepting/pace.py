"""How many connections klamm accepts in each second; the others wait in the queue of the kernel."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

SECOND = 1.0
BATCH = 64  # connections that are accepted before others have their turn
LEAST_WAIT_S = 0.005

Turn = Callable[[], None]


class Pace:
    """One for the process: in no second more than `per_s` connections are accepted, over all ports; 0: as
    many as come. Ports with connections that wait have their turns one after the other, a connection each.
    """

    def __init__(self, per_s: int) -> None:
        self.per_s = per_s
        self.accepted: deque[float] = deque(maxlen=per_s)  # times of the loop (s)
        self.waiting: deque[Turn] = deque()
        self.timer: asyncio.TimerHandle | None = None

    def limit(self, per_s: int) -> None:
        """From now on so many."""
        if per_s == self.per_s:
            return
        self.per_s, self.accepted = per_s, deque(self.accepted, maxlen=per_s)
        if self.timer is not None:
            self.timer.cancel()
            self._set_timer()

    def wait_s(self) -> float:
        """Until the next connection may be accepted; 0: it may be now."""
        if not self.per_s or len(self.accepted) < self.per_s:
            return 0.0
        return max(0.0, self.accepted[0] + SECOND - asyncio.get_running_loop().time())

    def count(self) -> None:
        """A connection was accepted."""
        if self.per_s:
            self.accepted.append(asyncio.get_running_loop().time())

    def wait(self, turn: Turn) -> None:
        """Call it when a connection may be accepted."""
        self.waiting.append(turn)
        if self.timer is None:
            self._set_timer()

    def _set_timer(self) -> None:
        after_s = max(self.wait_s(), LEAST_WAIT_S)
        self.timer = asyncio.get_running_loop().call_later(after_s, self._go_on)

    def _go_on(self) -> None:
        """Give each port that waits its turn, as long as connections may be accepted."""
        for _ in range(BATCH):
            if not self.waiting or self.wait_s():
                break
            self.waiting.popleft()()
        self.timer = None
        if self.waiting:
            self._set_timer()
