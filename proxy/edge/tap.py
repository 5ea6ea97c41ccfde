"""Gives the bytes of one connection to a capture: those that come, and those that are sent."""

from __future__ import annotations

import time

from klamm.captures.storage.keeper import Keeper
from klamm.decoders.schema import Side
from klamm.proxy.session.effects import Effect, Keep, To

SIDES: dict[To, Side] = {"broker": "request", "client": "response"}


class Tap:
    """`number`: of the connection. `wall_offset_ns`: from the monotonic clock to the time of day."""

    __slots__ = ("_keeper", "_number", "_wall_offset_ns")

    def __init__(self, keeper: Keeper, number: int, wall_offset_ns: int) -> None:
        self._keeper, self._number, self._wall_offset_ns = keeper, number, wall_offset_ns

    def came(self, side: Side, data: bytes, now: int, forwarded: bool) -> None:
        """`forwarded`: all of it went on at once; if not, `sent` gets the bytes that go on."""
        self._keeper.chunk(self._number, side, data, now + self._wall_offset_ns, forwarded)

    def keep(self, effects: list[Effect]) -> None:
        """Note the exchanges that rules want in the capture. To be called before their last bytes."""
        for effect in effects:
            if isinstance(effect, Keep):
                self._keeper.keep(self._number, effect.correlation_id)

    def sent(self, to: To, data: bytes | memoryview) -> None:
        self._keeper.sent(self._number, SIDES[to], bytes(data), self._now())

    def closed(self, why: str) -> None:
        self._keeper.closed(self._number, why, self._now())

    def _now(self) -> int:
        """By the clock of the bytes that come: the time of day may be set meanwhile."""
        return time.monotonic_ns() + self._wall_offset_ns
