"""Reads klamm.yaml again: when it changes, at SIGHUP, and for POST /v1/config.

With mistakes in it nothing changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from klamm.proxy.config import Config
from klamm.proxy.log.events import Events
from klamm.settings.mistakes import ConfigError
from klamm.settings.watched_files import WatchedFiles

LOOK_S = 1.0  # between two checks of the file; a change is read once two checks agree
SHOWN = 5  # mistakes in one line of the log


class Source(NamedTuple):
    """Where the configuration comes from: a file, and the options, which `read` puts over it. `read` may be
    called in any thread, and raises ConfigError.
    """

    file: str
    read: Callable[[], Config]


class Applied(NamedTuple):
    """The keys whose values differ now. `at_start`: those of them that wait for klamm's next start."""

    changed: list[str]
    at_start: list[str]


class Unusable(Exception):
    """A configuration without mistakes that cannot be used: a file or an address is missing."""


class ConfigFile:
    """`apply` uses a configuration, or raises Unusable and changes nothing. Without a source there is nothing
    to be read, and `reload` is not called. `mistakes`: of the file as it is on the disk.
    """

    def __init__(
        self, source: Source | None, apply: Callable[[Config], Awaitable[Applied]], log: Events
    ) -> None:
        self.source, self.apply, self.log = source, apply, log
        self.mistakes: list[str] = []
        self.one = asyncio.Lock()
        self.task: asyncio.Task[Applied | None] | None = None
        self.watched = self._watched()

    async def follow(self) -> None:
        """Check the file until cancelled."""
        while self.source is not None:
            await asyncio.sleep(LOOK_S)
            if self.watched.changed():
                await self.reload(f"{self.source.file} has changed")

    def soon(self, why: str) -> None:
        """Read it in a task."""
        self.task = asyncio.get_running_loop().create_task(self.reload(why))

    async def reload(self, why: str) -> Applied | None:
        """Read the file and use it. None if it cannot be used: then `mistakes` says why."""
        assert self.source is not None
        async with self.one:
            self.watched = self._watched()
            try:
                applied = await self.apply(await asyncio.to_thread(self.source.read))
            except ConfigError as error:
                self._reject(why, [str(mistake) for mistake in error.mistakes])
                return None
            except Unusable as error:
                self._reject(why, [str(error)])
                return None
            self.mistakes = []
            self._say(why, applied)
            return applied

    def _reject(self, why: str, mistakes: list[str]) -> None:
        self.mistakes = mistakes
        more = f"; and {len(mistakes) - SHOWN} more" if len(mistakes) > SHOWN else ""
        message = f"{why}: nothing was changed: {'; '.join(mistakes[:SHOWN])}{more}"
        self.log.event("config_rejected", message, "error", per=message)

    def _say(self, why: str, applied: Applied) -> None:
        changed = [path for path in applied.changed if path not in applied.at_start]
        message = f"{why}: {', '.join(changed) if changed else 'no setting is another'}"
        self.log.event("config_loaded", message, changed=changed)
        if applied.at_start:
            message = f"taken at klamm's next start only: {', '.join(applied.at_start)}"
            self.log.event("config_waits", message, "warning", per=message)

    def _watched(self) -> WatchedFiles:
        return WatchedFiles(() if self.source is None else [self.source.file])
