"""Looks at files each second, and takes them when they have changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from klamm.proxy.log.events import Events
from klamm.settings.followed_files import FollowedFiles

LOOK_S = 1.0


async def follow(
    current: Callable[[], Iterable[FollowedFiles[Any] | None]], log: Events, cluster: str | None = None
) -> None:
    """Look until cancelled. Files that cannot be used change nothing. `current` is asked each second: a
    reload may give other files.
    """
    labels: dict[str, Any] = {} if cluster is None else {"cluster": cluster}
    while True:
        await asyncio.sleep(LOOK_S)
        for files in current():
            if files is not None and files.changed():
                _reload(files, log, labels)


def _reload(files: FollowedFiles[Any], log: Events, labels: dict[str, Any]) -> None:
    try:
        files.reload()
    except OSError as error:
        message = f"the files for {files.about} cannot be used, the ones before stay: {error}"
        log.event(f"{files.kind}_rejected", message, "error", per=(files.about, str(error)), **labels)
    else:
        message = f"{files.takes} {', '.join(files.files)} as they are now"
        log.event(f"{files.kind}_loaded", message, **labels)
