"""A TLS context from files, made anew when they change. Open connections keep the one that they have."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable

from klamm.settings.followed_files import FollowedFiles


class FollowedTls(FollowedFiles[ssl.SSLContext]):
    """`context` is for the next handshake; `taken` gets each new one. `side` names the other end."""

    def __init__(self, side: str, files: Iterable[str | None], make: Callable[[], ssl.SSLContext]) -> None:
        """Raises OSError on files that cannot be used."""
        self.taken: Callable[[ssl.SSLContext], None] = lambda context: None
        super().__init__("tls", f"TLS {side}", f"new connections {side} get", files, make)

    @property
    def context(self) -> ssl.SSLContext:
        return self.value

    def reload(self) -> None:
        super().reload()
        self.taken(self.value)
