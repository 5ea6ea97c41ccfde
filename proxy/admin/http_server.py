"""An HTTP listener of klamm's own, on the proxy's loop."""

from __future__ import annotations

from aiohttp import web
from aiohttp.typedefs import Handler

from klamm.proxy.admin.json_bodies import refusal
from klamm.proxy.cluster.discovery import why_not_bound
from klamm.proxy.config import Address
from klamm.proxy.control.rule_book import Refused


class HttpServer:
    """One that runs. `address` holds the port that was taken where 0 was asked for."""

    def __init__(self, runner: web.AppRunner, address: Address) -> None:
        self._runner, self.address = runner, address

    async def close(self) -> None:
        """Stops listening and ends what is open."""
        await self._runner.cleanup()


async def listen(app: web.Application, at: Address, option: str) -> HttpServer:
    """Serve `app`. Raises OSError, whose `strerror` is for people and names the option."""
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, *at).start()
    except OSError as error:
        await runner.cleanup()
        where = f"cannot listen on {at}: {why_not_bound(error)}"
        raise OSError(error.errno, f"{where}; choose another with {option} HOST:PORT") from error
    return HttpServer(runner, Address(at.host, runner.addresses[0][1]))


@web.middleware
async def problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever is refused is a Problem."""
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
