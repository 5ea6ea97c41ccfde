"""Tests wait for what happens, never for time to pass; every wait has an end."""

from __future__ import annotations

import asyncio
import functools
import warnings
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import uvloop

PATIENCE_S = 60.0  # for anything that must happen
LOOK_S = 0.002
P = ParamSpec("P")


class Signal:
    """Wakes those who wait for a condition, whenever something happened."""

    def __init__(self) -> None:
        self.waiting: set[asyncio.Future[None]] = set()

    def send(self) -> None:
        for waiter in self.waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def until(self, true: Callable[[], Any]) -> None:
        """TimeoutError when it does not come true."""
        async with asyncio.timeout(PATIENCE_S):
            while not true():
                waiter = asyncio.get_running_loop().create_future()
                self.waiting.add(waiter)
                try:
                    await waiter
                finally:
                    self.waiting.remove(waiter)


async def eventually(true: Callable[[], Any]) -> None:
    """For the state of the code under test, which has no signal: looks again and again."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():
            await asyncio.sleep(LOOK_S)


async def turns(count: int = 20) -> None:
    """Let the loop go round, so that what must not happen had its chance."""
    for _ in range(count):
        await asyncio.sleep(0)


def on_uvloop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test on uvloop, as klamm does. An exception that reaches the loop fails it."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        reached: list[dict[str, Any]] = []

        async def watched() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: reached.append(context))
            try:
                async with asyncio.timeout(3 * PATIENCE_S):
                    await test(*args, **kwargs)
            except BaseException:  # do not warn of what it left open: uvloop hangs then
                warnings.simplefilter("ignore", ResourceWarning)
                raise

        with warnings.catch_warnings():
            uvloop.run(watched())
        reached = [one for one in reached if not isinstance(one.get("exception"), OSError)]  # dials given up
        assert reached == [], reached

    return run
