"""The HTTP servers of the process: the admin API, and a listener for metrics and health alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from klamm.proxy.config import Config
from klamm.proxy.log.event_log import EventLog
from klamm.proxy.metrics.snapshot import Certificate, State

if TYPE_CHECKING:
    from klamm.proxy.admin.listening.http_server import HttpServer
    from klamm.proxy.admin.routes import Control
    from klamm.proxy.edge.accepting.followed_tls import FollowedTls


class HttpServers:
    """The HTTP servers that are configured. aiohttp takes 12 MB, so it is imported only if there is one."""

    def __init__(self) -> None:
        self.admin: HttpServer | None = None
        self.metrics: HttpServer | None = None
        self.tls: FollowedTls | None = None

    async def start(
        self, config: Config, state: State, control: Callable[[], Control], log: EventLog
    ) -> None:
        """Raises OSError, whose `strerror` is for people."""
        admin, metrics = config.admin.listen, config.metrics.listen
        try:
            if admin is not None:
                from klamm.proxy.admin import server as admin_server
                from klamm.proxy.admin.listening.https import tls_of

                self.tls = tls_of(config.admin.tls)
                self.admin = await admin_server.start(state, *admin, control(), self.tls)
            if metrics is not None:
                from klamm.proxy.admin import health

                self.metrics = await health.start(state, metrics, log)
        except OSError:
            if self.admin is not None:
                await self.admin.close()
            raise

    def certificates(self) -> Iterator[Certificate]:
        """Those of klamm's own that callers of the admin API see."""
        return Certificate.of("", "callers", None if self.tls is None else self.tls.validity)

    def stop_listening(self) -> None:
        """New requests are for another process from now on; open connections stay."""
        for server in (self.admin, self.metrics):
            if server is not None:
                server.stop_listening()

    async def close(self) -> None:
        for server in (self.admin, self.metrics):
            if server is not None:
                await server.close()

    def urls(self) -> tuple[str | None, str | None]:
        """Of the admin API, and of metrics and health."""
        admin, metrics = (None if each is None else each.url for each in (self.admin, self.metrics))
        return admin, metrics
