"""Hands the bytes of one connection to a capture, as they come and as they go on."""

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
        """`forwarded`: all of it went on at once; else see `sent`."""
        self._keeper.chunk(self._number, side, data, now + self._wall_offset_ns, forwarded)

    def keep(self, effects: list[Effect]) -> None:
        """The exchanges that rules want in the capture; before the bytes that end their frames go on."""
        for effect in effects:
            if isinstance(effect, Keep):
                self._keeper.keep(self._number, effect.correlation_id)

    def sent(self, to: To, data: bytes | memoryview) -> None:
        self._keeper.sent(self._number, SIDES[to], bytes(data), time.time_ns())

    def closed(self, why: str) -> None:
        self._keeper.closed(self._number, why, time.time_ns())
