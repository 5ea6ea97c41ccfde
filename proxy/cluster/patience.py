"""Timeouts that count only the time in which klamm runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

SLICES = 10
T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T], drop: Callable[[T], None]) -> T:
    """The result of the work; one that comes when nobody waits any more is dropped. Raises TimeoutError."""
    task = asyncio.ensure_future(work)
    try:
        if await wait_for_any((task,), seconds):
            return task.result()
        raise TimeoutError
    except (TimeoutError, asyncio.CancelledError):
        task.cancel()
        task.add_done_callback(lambda late: _drop(late, drop))
        raise


async def wait_for_any(tasks: Iterable[asyncio.Task[Any]], seconds: float) -> bool:
    """Wait until one of them is done, but no longer than that. True if one is.

    The time is waited for in slices: a process that was stopped for long (SIGSTOP, a laptop that slept) has
    lost one slice, and then sees what came meanwhile.
    """
    for _ in range(SLICES):
        done, _waiting = await asyncio.wait(
            tasks, timeout=seconds / SLICES, return_when=asyncio.FIRST_COMPLETED
        )
        if done:
            return True
    return False


def _drop(late: asyncio.Task[T], drop: Callable[[T], None]) -> None:
    if not late.cancelled() and late.exception() is None:
        drop(late.result())
