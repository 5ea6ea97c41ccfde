"""An HTTP listener of klamm's own, on the proxy's loop."""

from __future__ import annotations

import asyncio

from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.proxy.admin.listening.connections import Connections
from klamm.proxy.admin.listening.http_problems import logger
from klamm.proxy.admin.listening.https import listen_for_callers
from klamm.proxy.admin.listening.json_bodies import refusal
from klamm.proxy.cluster.own_requests.discovery import why_not_bound
from klamm.proxy.config_types import Address
from klamm.proxy.control.rule_book import Refused
from klamm.proxy.edge.accepting.followed_tls import FollowedTls
from klamm.proxy.edge.accepting.listener import Listener
from klamm.proxy.log.events import Events


class HttpServer:
    """A running HTTP server. `address` has the port that was chosen if 0 was asked for."""

    def __init__(
        self, runner: web.AppRunner, server: Listener, connections: Connections, host: str, scheme: str
    ) -> None:
        self._runner, self._server, self.connections = runner, server, connections
        self.address = Address(host, server.sockets[0].getsockname()[1])
        self.url = f"{scheme}://{self.address}/"

    def stop_listening(self) -> None:
        """Take no new connections."""
        self._server.close()

    async def close(self) -> None:
        """Stop listening, and end open connections."""
        self._server.close()
        self.connections.close()
        await self._runner.cleanup()


async def listen(
    app: web.Application,
    at: Address,
    option: str,
    endless: frozenset[str] = frozenset(),
    log: Events | None = None,
    tls: FollowedTls | None = None,
) -> HttpServer:
    """Serve `app`; its problems go to `log`. `endless`: its paths whose answers have no end. `tls` None: in
    plain text.

    Raises OSError, whose `strerror` is for people and names the option.
    """
    runner = web.AppRunner(
        app, access_log=None, logger=logger(log), handle_signals=False, shutdown_timeout=1.0
    )
    connections = Connections(lambda: _protocol(runner), endless)
    app.middlewares.insert(0, connections.watched)
    await runner.setup()
    try:
        server = await listen_for_callers(at, tls, connections.accept, log)
    except OSError as error:
        await runner.cleanup()
        where = f"cannot listen on {at}: {why_not_bound(error)}"
        raise OSError(error.errno, f"{where}; choose another with {option} HOST:PORT") from error
    return HttpServer(runner, server, connections, at.host, "http" if tls is None else "https")


def _protocol(runner: web.AppRunner) -> asyncio.Protocol:
    assert runner.server is not None
    return runner.server()


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns every refusal into a response with a Problem."""
    try:
        return await handler(request)
    except Refused as no:
        response = refusal(no.status, str(no), no.mistakes)
        if no.status == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        return response
    except web.HTTPException as no:
        response = refusal(no.status, no.reason)
        if "Allow" in no.headers:
            response.headers["Allow"] = no.headers["Allow"]
        return response
