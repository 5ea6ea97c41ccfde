"""Passwords are hashed in one thread, for one address after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
HASHING = ThreadPoolExecutor(1, "passwords")  # guesses at passwords take one core at most


class Hashing:
    """Addresses have their turns: one that guesses much waits for itself, the others hardly for it."""

    def __init__(self) -> None:
        self.busy = False
        self.waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the next address first

    async def work(self, host: str, work: Callable[[], T]) -> T:
        """The result of `work`, which runs in the thread when it is the turn of this address."""
        if self.busy:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self.waiting.setdefault(host, deque()).append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():  # it was its turn already
                    self._pass_on()
                raise
        self.busy = True
        try:
            return await asyncio.get_running_loop().run_in_executor(HASHING, work)
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """The turn goes to the next address with somebody who still waits."""
        self.busy = False
        while self.waiting and not self.busy:
            host, turns = next(iter(self.waiting.items()))
            turn = turns.popleft()
            del self.waiting[host]
            if turns:
                self.waiting[host] = turns  # behind the others
            if not turn.done():
                self.busy = True
                turn.set_result(None)
