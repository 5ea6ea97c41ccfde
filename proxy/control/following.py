"""Looks at files each second, and takes them when they have changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from klamm.proxy.log.events import Events
from klamm.settings.followed_files import FollowedFiles

LOOK_S = 1.0
DAY_S = 86400.0


async def follow(
    current: Callable[[], Iterable[FollowedFiles[Any] | None]], log: Events, cluster: str | None = None
) -> None:
    """Look until cancelled. Files that cannot be used change nothing. `current` is asked each second: a
    reload may give other files. A certificate whose time is not now, or soon over, is told once a day.
    """
    labels: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
    told: dict[str, float] = {}  # by what was told, when (s)
    while True:
        await asyncio.sleep(LOOK_S)
        for files in filter(None, current()):
            if files.changed():
                _reload(files, log, labels)
            doubt, now = files.doubt(datetime.now(UTC)), time.monotonic()
            if doubt is not None and now - told.get(doubt, -DAY_S) >= DAY_S:
                told[doubt] = now
                log.event("certificate_validity", f"{files.about}: {doubt}", "warning", per=doubt, **labels)


def _reload(files: FollowedFiles[Any], log: Events, labels: dict[str, Any]) -> None:
    try:
        files.reload()
    except OSError as error:
        message = f"the files for {files.about} cannot be used, the ones before stay: {error}"
        log.event(f"{files.kind}_rejected", message, "error", per=(files.about, str(error)), **labels)
    else:
        message = f"{files.takes} {', '.join(files.files)} as they are now"
        log.event(f"{files.kind}_loaded", message, **labels)
