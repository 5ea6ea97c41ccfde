"""A value that is made from files, and made anew when they change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Generic, TypeVar

from klamm.settings.watched_files import WatchedFiles

T = TypeVar("T")


class FollowedFiles(Generic[T]):
    """`value` is made by the last `make` that succeeded. For the log: `kind` begins the names of events
    (`KIND_loaded`), `about` is the purpose of the files, `takes` the sentence that their names end.
    """

    def __init__(
        self, kind: str, about: str, takes: str, files: Iterable[str | None], make: Callable[[], T]
    ) -> None:
        """Raises OSError on files that cannot be used."""
        self.kind, self.about, self.takes, self.make = kind, about, takes, make
        self.files = [file for file in files if file is not None]
        self.value = make()
        self.watched = WatchedFiles(self.files)

    def changed(self) -> bool:
        """Have the files changed, and not since the last call?"""
        return self.watched.changed()

    def doubt(self, now: datetime) -> str | None:
        """Why what is in force cannot be used at this time, or soon."""
        return None

    def reload(self) -> None:
        """Take the files as they are now. Raises OSError, and keeps the old value then."""
        self.watched = WatchedFiles(self.files)
        self.value = self.make()
