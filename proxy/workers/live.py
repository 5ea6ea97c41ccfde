"""A reader of /v1/live, whose lines come from the workers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from klamm.proxy.workers.messages import Lines

Asked = tuple[str | None, str, str | None]  # where, bodies and rule, as in the request
LOOK_S = 1.0  # the longest that a call of `lines` waits


class LiveReader:
    """Each worker waits until its lines are taken."""

    def __init__(self, asked: Asked, ended: Callable[[], None]) -> None:
        self.asked, self.ended = asked, ended
        self.waiting: deque[tuple[Lines, asyncio.Future[bool]]] = deque()
        self.some = asyncio.Event()
        self.closed = False

    async def put(self, lines: Lines) -> bool:
        """Waits until they are taken. False: the worker need send no more."""
        if self.closed:
            return False
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.waiting.append((lines, taken))
        self.some.set()
        return await taken

    async def lines(self) -> Lines:
        """Waits for some, LOOK_S at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self.some.wait()
        if not self.waiting:
            return Lines()
        found, taken = self.waiting.popleft()
        if not self.waiting:
            self.some.clear()
        _give(taken, True)
        return found

    def close(self) -> None:
        self.closed = True
        for _, taken in self.waiting:
            _give(taken, False)
        self.waiting.clear()
        self.ended()


def _give(future: asyncio.Future[bool], value: bool) -> None:
    if not future.done():  # its worker may have died
        future.set_result(value)
