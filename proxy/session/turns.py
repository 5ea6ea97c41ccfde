"""Limits the work on the bytes of one connection before other connections have their turn.

Pure: times are arguments, in ns.
"""

from __future__ import annotations

from typing import Final, final

from klamm.proxy.session.pending import ALL, LEAST
from klamm.proxy.session.pending import MOST as MOST_PENDING

MOST: Final = 1024  # units of some 1 us in a turn
SHORT: Final = 64  # the same while very many connections are busy
KNOWN: Final = 1  # for a frame that is like those before it
READ: Final = 10  # for one that is read
STEPS: Final = 10  # of the work of rules, for a unit
OVERDRAWN: Final = -1024  # units left after a frame that took very much
TURN_NS: Final = 1_000_000  # reads within this time share a turn
MANY: Final = 4  # busy connections; where there are more, they share the turns of so many
WINDOW_NS: Final = 100_000_000  # busy connections are counted over such a time


@final
class Crowd:
    """Counts the busy connections of the process: those with a turn of SHORT units or more. `pending`: the
    bytes of pending requests beyond which a client is not read.
    """

    __slots__ = ("before", "busy", "pending", "since")

    def __init__(self) -> None:
        self.busy: set[int] = set()
        self.before = 0  # in the window before this one
        self.since = 0
        self.pending = MOST_PENDING

    def connected(self, count: int) -> None:
        """So many connections are open now."""
        self.pending = min(MOST_PENDING, max(LEAST, ALL // max(count, 1)))

    def note(self, turns: Turns, now: int) -> None:
        """A busy connection begins its next turn."""
        if now - self.since > WINDOW_NS:
            self.before = len(self.busy)
            self.busy.clear()
            self.since = now
        self.busy.add(id(turns))

    def turn(self) -> int:
        """The units of a turn that begins now."""
        busy = max(len(self.busy), self.before)
        return max(SHORT, MOST * MANY // busy) if busy > MANY else MOST


@final
class Turns:
    """`left`: units of work in this turn; below 0 the turn is over."""

    __slots__ = ("began", "crowd", "left", "units")

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.began = -TURN_NS
        self.left = self.units = MOST

    def overdrawn(self) -> bool:
        """Did the last frame take so much that the next bytes have to wait for their turn? True once for each
        such frame.
        """
        if self.left >= OVERDRAWN:
            return False
        self.left = -1
        return True

    def begin(self, now: int) -> None:
        """A read has come: begin a new turn if the current one began more than TURN_NS ago."""
        if now - self.began > TURN_NS:
            self.renew(now)

    def renew(self, now: int) -> None:
        """Begin a new turn: other connections have had theirs."""
        if self.units - self.left >= SHORT:
            self.crowd.note(self, now)
        self.began = now
        self.left = self.units = self.crowd.turn()
