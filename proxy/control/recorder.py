"""Keeps the newest exchanges for as long as somebody asks for them."""

from __future__ import annotations

import asyncio
import time

from klamm.proxy.control.listeners import Exchanges, Ring

KEPT, KEPT_BYTES = 1000, 16 << 20
KEPT_S = 60.0  # after the last request for them


class Recorder:
    """Has a ring of exchanges while somebody asks for it."""

    def __init__(self, exchanges: Exchanges) -> None:
        self.exchanges = exchanges
        self.ring: Ring | None = None
        self.end: asyncio.TimerHandle | None = None

    def asked(self, bodies: bool) -> Ring:
        """The ring, made by the first call. It ends KEPT_S after the last call; it has bodies after a call
        with `bodies`.
        """
        if self.ring is None or (bodies and not self.ring.bodies):
            fresh = Ring(KEPT, KEPT_BYTES, bodies, time.time())
            self.exchanges.open(fresh, None)
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
