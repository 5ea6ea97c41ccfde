"""A listener that takes a share of the exchanges, at hardly any cost for the others."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from random import random
from typing import Protocol

from klamm.proxy.control.exchange import Seen

BEHIND = 1000  # exchanges in a row that are taken, at most, for those that went by


class Queue(Protocol):
    """Where exchanges wait for the thread."""

    @property
    def room(self) -> bool: ...
    def put(self, one: Seen) -> None: ...
    def drop(self, count: int) -> None: ...


class Sampling:
    """Takes each exchange with the chance `share`. Between two of them it is `full`, so that sessions only
    count what goes by. `soon` calls a function after the reads that are under way.
    """

    bodies = False

    def __init__(
        self,
        share: float,
        queue: Queue,
        soon: Callable[[Callable[[], None]], object],
        draw: Callable[[], float] = random,
    ) -> None:
        self.share, self.queue, self.soon, self.draw = share, queue, soon, draw
        self.left = self._gap()  # up to the next that is taken, that one included
        self.turning = False
        self.full = self.left > 1

    def take(self, one: Seen) -> None:
        self.left -= 1
        if self.left <= 0:
            self.queue.put(one)
            self.left = max(self.left, -BEHIND) + self._gap()
        if not self.turning and (self.left > 1 or not self.queue.room):
            self.turning = True
            self.soon(self._turn)  # one read may have more exchanges, which come here too

    def missed(self, count: int) -> None:
        self.left -= count
        if self.left > 1:
            return
        if self.queue.room:
            self.full = False
            return
        dropped = 0
        while self.left <= 0:
            dropped += 1
            self.left += self._gap()
        self.queue.drop(dropped)

    def _turn(self) -> None:
        self.turning, self.full = False, self.left > 1 or not self.queue.room

    def _gap(self) -> int:
        """How many exchanges there are up to the next one that is taken."""
        if self.share >= 1:
            return 1
        return 1 + int(log(1 - self.draw()) / log(1 - self.share))


class Chosen:
    """Takes all that it gets: rules have chosen already."""

    full, bodies = False, True

    def __init__(self, queue: Queue) -> None:
        self.queue = queue

    def take(self, one: Seen) -> None:
        self.queue.put(one)

    def missed(self, count: int) -> None:
        self.queue.drop(count)
