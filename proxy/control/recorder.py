"""Keeps the newest exchanges for as long as somebody asks for them."""

from __future__ import annotations

import asyncio
import time

from klamm.proxy.control.listeners import Exchanges, Ring

KEPT, KEPT_BYTES = 1000, 16 << 20
KEPT_S = 60.0  # after the last question


class Recorder:
    """A ring that is there while it is asked for."""

    def __init__(self, exchanges: Exchanges) -> None:
        self.exchanges = exchanges
        self.ring: Ring | None = None
        self.end: asyncio.TimerHandle | None = None

    def asked(self, bodies: bool) -> Ring:
        """The ring, from now on for as long as it is asked for; once with bodies, always with them."""
        if self.ring is None or (bodies and not self.ring.bodies):
            fresh = Ring(KEPT, KEPT_BYTES, bodies, time.time())
            self.exchanges.open(fresh, None, bodies)
            self.stop()
            self.ring = fresh
        if self.end is not None:
            self.end.cancel()
        self.end = asyncio.get_running_loop().call_later(KEPT_S, self.stop)
        return self.ring

    def stop(self) -> None:
        if self.ring is not None:
            self.exchanges.close(self.ring)
            self.ring = None
