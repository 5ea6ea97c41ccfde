"""Tasks of one cluster, which end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine


class KeptTasks:
    """`failed` gets the exception of a task that raised one: a defect of klamm."""

    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        self.failed = failed
        self.running: set[asyncio.Task[None]] = set()

    def run(self, work: Awaitable[None]) -> asyncio.Task[None]:
        """Run it to its end."""
        assert isinstance(work, Coroutine)
        task = asyncio.get_running_loop().create_task(work)
        self.running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self.running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed(error)

    async def stop(self) -> None:
        """End them all."""
        for task in list(self.running):
            task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
