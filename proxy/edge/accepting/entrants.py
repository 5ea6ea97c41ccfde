"""The connections on their way in, in bounds that no address can use up alone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine, Iterator
from typing import Any


class Entrants:
    """No more than `most`: for the next one the oldest is given up, of the address that has most of them."""

    def __init__(self, most: int) -> None:
        self.most, self.count = most, 0
        self.by_host: dict[str, dict[asyncio.Task[None], None]] = {}  # each in the order in which they came

    def __iter__(self) -> Iterator[asyncio.Task[None]]:
        return (task for tasks in self.by_host.values() for task in tasks)

    def let(self, host: str, sock: socket.socket, enter: Coroutine[Any, Any, None]) -> None:
        """Let a connection from this address come in, which takes until `enter` has ended. Given up, even
        before `enter` has begun, its socket is closed.
        """
        if self.count >= self.most:
            crowd = max(self.by_host, key=lambda each: len(self.by_host[each]))
            oldest = next(iter(self.by_host[crowd]))
            oldest.cancel()
            self._leave(crowd, oldest)
        task = asyncio.get_running_loop().create_task(enter)
        self.by_host.setdefault(host, {})[task] = None
        self.count += 1
        task.add_done_callback(lambda done: self._leave(host, done))
        task.add_done_callback(lambda done: sock.close() if done.cancelled() else None)

    def cancel(self) -> None:
        """Give them all up."""
        for task in self:
            task.cancel()

    def _leave(self, host: str, task: asyncio.Task[None]) -> None:
        tasks = self.by_host.get(host, {})
        if task not in tasks:  # it was given up
            return
        del tasks[task]
        self.count -= 1
        if not tasks:
            del self.by_host[host]
