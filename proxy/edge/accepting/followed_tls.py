"""A TLS context from files, made anew when they change. Open connections keep the one that they have."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial

from klamm.proxy.edge.rounds import Rounds
from klamm.settings.certificates import validity_of
from klamm.settings.followed_files import FollowedFiles

HANDSHAKE_NS = 2_000_000  # of work, with the signature


class FollowedTls(FollowedFiles[ssl.SSLContext]):
    """`context` is for the next handshake; `taken` gets each new one. `side` names the other end. `validity`:
    of klamm's own certificate, the one in `cert`; None: it shows none, or one that cannot be read.
    """

    def __init__(
        self, side: str, files: Iterable[str | None], make: Callable[[], ssl.SSLContext], cert: str | None
    ) -> None:
        """Raises OSError on files that cannot be used."""
        self.taken: Callable[[ssl.SSLContext], None] = lambda context: None
        self.rounds = Rounds()
        self.cert = cert
        super().__init__("tls", f"TLS {side}", f"new connections {side} get", files, make)
        self.validity = None if cert is None else validity_of(cert)

    @property
    def context(self) -> ssl.SSLContext:
        return self.value

    async def turn(self) -> None:
        """Wait until one more handshake may begin: a few do in each pass of the loop."""
        come: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.rounds.wait(partial(_begin, come), HANDSHAKE_NS)
        await come

    def doubt(self, now: datetime) -> str | None:
        return None if self.validity is None else self.validity.doubt(now)

    def reload(self) -> None:
        super().reload()
        self.validity = None if self.cert is None else validity_of(self.cert)
        self.taken(self.value)


def _begin(come: asyncio.Future[None]) -> None:
    if not come.done():  # the connection may have been given up
        come.set_result(None)
