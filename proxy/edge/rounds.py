"""Lets connections whose turn is over go on one after the other, a few in each pass of the loop.

However many they are, a pass stays short, and connections that need no second turn do not wait for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from time import monotonic_ns

MOST = 16  # connections that go on in one pass
PASS_NS = 4_000_000  # of their work in one pass, and of that which follows it


class Rounds:
    """One per process. Connections wait here, oldest first."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[Callable[[], None], int]] = deque()
        self.due = False  # is a pass scheduled?

    def wait(self, go_on: Callable[[], None], expected_ns: int = 0) -> None:
        """Call `go_on` when its turn has come: in the next pass of the loop at the earliest. `expected_ns`:
        of work that follows the call, with the next read.
        """
        self.waiting.append((go_on, expected_ns))
        if not self.due:
            self._soon()

    def _soon(self) -> None:
        self.due = True
        asyncio.get_running_loop().call_soon(self._pass)

    def _pass(self) -> None:
        """At least one goes on, however long the process had to wait for the processor."""
        until, left = monotonic_ns() + PASS_NS, min(MOST, len(self.waiting))
        self.due = False
        try:
            while left:
                left -= 1
                go_on, expected_ns = self.waiting.popleft()
                go_on()
                until -= expected_ns
                if monotonic_ns() >= until:
                    break
        finally:
            if self.waiting and not self.due:
                self._soon()
